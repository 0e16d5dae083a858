package sim

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// checker holds the world to I1 to I8 after every step. Sim.applying guards all but the
// findings.
type checker struct {
	sim     *Sim
	model   *model
	objects map[string]*content
	named   map[string]bool      // keys that refs name
	died    map[string]time.Time // when the last ref of a key went
	rows    map[segment.Chain]catalog.ChainRow
	live    map[string]segment.Pos // of streams
	trims   map[string]segment.Pos // the highest that the operator asked for
	asked   map[segment.Chain]segment.Seq
	removed map[segment.Chain]bool // a consumer's removal was asked for
	owners  map[termOf]string      // machines
	doomed  map[string]bool        // keys that were condemned while an object stood there
	lost    map[string]*content    // keys that an event took out of every bucket
	voided  map[segment.Chain]bool // a slot of it was absorbed as void
	changes uint64

	mu       sync.Mutex // findings
	findings []string
}

func newChecker(s *Sim) *checker {
	return &checker{
		sim: s, model: s.model, objects: map[string]*content{}, named: map[string]bool{}, died: map[string]time.Time{},
		rows: map[segment.Chain]catalog.ChainRow{}, live: map[string]segment.Pos{}, trims: map[string]segment.Pos{},
		asked: map[segment.Chain]segment.Seq{}, removed: map[segment.Chain]bool{}, owners: map[termOf]string{}, doomed: map[string]bool{}, lost: map[string]*content{}, voided: map[segment.Chain]bool{},
	}
}

// violated records that a rule was broken.
func (k *checker) violated(rule, format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.findings) < 20 {
		k.findings = append(k.findings, rule+": "+fmt.Sprintf(format, args...))
	}
}

func (k *checker) broken() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.findings) > 0
}

// after looks at what a step changed.
func (k *checker) after(c *call) {
	if c.store() {
		k.afterRequest(c)
		return
	}
	changes := k.sim.cat.Changes()
	if changes == k.changes {
		return
	}
	k.changes = changes
	k.sim.cat.View(func(v memory.View) {
		k.chains(v)
		k.trimmed(v, c)
		k.burned(v, c)
		switch c.what {
		case "cat AbsorbSlot", "cat CommitRewrite", "cat RetireRefs", "cat TrimStream", "cat DeleteStream", "cat RaiseWatermark", "cat AcceptLoss":
			k.refs(v)
		}
	})
}

func (k *checker) afterRequest(c *call) {
	if v := c.bucket.Violations(); len(v) > c.bucket.seen {
		for _, text := range v[c.bucket.seen:] {
			k.violated("referee", "%s: %s", c.bucket.Name(), text)
		}
		c.bucket.seen = len(v)
	}
	if c.op != objstore.OpPut && c.op != objstore.OpComplete {
		return
	}
	if c.bucket == k.sim.mem {
		k.written(c.object)
	} else {
		k.copied(c.bucket, c.object)
	}
}

// written decodes what stands at a key now.
func (k *checker) written(key string) {
	parsed, err := segment.ParseKey(key)
	if err != nil {
		k.violated("K15", "key %q of no shape of ours: %v", key, err)
		return
	}
	switch parsed.Kind {
	case segment.KeySlot:
		k.published(parsed)
	case segment.KeyStream, segment.KeyPack:
	case segment.KeyHead:
		k.sim.back.headAt = time.Now()
		return
	default:
		return
	}
	body, etag, ok := k.sim.mem.body(key)
	if !ok {
		return // the write did not come to that
	}
	if old := k.objects[key]; old != nil {
		if k.lost[key] != nil && old.digest == digest(body) {
			old.etag = etag // it was sent once more
		}
		if old.etag == etag {
			return
		}
		if !k.sim.mayComeAgain(key) {
			k.violated("02", "object %s was overwritten", key)
			return
		}
		if k.sim.standsAsItWas(key, old) {
			return // another bucket of the set has what readers believe
		}
	}
	o, err := decode(body)
	if err != nil {
		k.violated("I2", "object %s does not decode: %v", key, err)
		return
	}
	o.etag, o.size, o.digest = etag, int64(len(body)), digest(body)
	k.objects[key] = o
}

// acknowledged takes in that a client was told yes.
func (k *checker) acknowledged(p *process, recs []*record, res localtier.Result, ack localtier.Ack) {
	k.sim.applying.Lock()
	defer k.sim.applying.Unlock()
	chain := segment.Chain{Epoch: res.Epoch, Shard: res.Shard}
	if n := int(res.Last-res.First) + 1; n != len(recs) {
		k.violated("I1", "%s: %d rows acknowledged as seqs %d to %d of %s", p.name, len(recs), res.First, res.Last, chain)
	}
	h := k.model.chain(chain)
	for i, r := range recs {
		r.acked, r.chain, r.term, r.seq = ack, chain, res.Term, res.First+segment.Seq(i)
		past := int(r.seq) <= len(h.rows)
		switch {
		case past && r.inHistory:
		case ack == localtier.AckShared && !r.was:
			k.violated("I8", "%s acknowledged %q as shared, at %s seq %d, where the history has %d rows and this is not among them", p.name, short(r.payload), chain, r.seq, len(h.rows))
		case !past:
			h.waiting[r.seq] = append(h.waiting[r.seq], r)
		}
	}
}

func short(s string) string { return s[:min(len(s), 20)] }

// consumerAsked takes in how far a consumer was moved at most.
func (k *checker) consumerAsked(c segment.Chain, to segment.Seq) {
	k.sim.applying.Lock()
	defer k.sim.applying.Unlock()
	k.asked[c] = max(k.asked[c], to)
}

func (k *checker) consumerGoes(c segment.Chain) {
	k.sim.applying.Lock()
	defer k.sim.applying.Unlock()
	k.removed[c] = true
}

// openFailed takes in why a writer did not start.
func (k *checker) openFailed(p *process, err error) {
	switch kind := kindOf(err); kind {
	case "rolled back", "leftover", "corrupt", "halted", "other":
		if k.sim.refusedSince(kind != "other" || errors.Is(err, catalog.ErrNotFound)) {
			return
		}
		if p.alive() {
			k.violated("start", "%s cannot open its directory: %v", p.name, err)
		}
	}
}
