package sim

import (
	"maps"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Calm is the run of a seed in which nothing goes wrong: only there does every request have
// its reason, and I9 can be counted.
func Calm(seed uint64) Config {
	cfg := Default(seed)
	cfg.Rates, cfg.Events, cfg.Buckets, cfg.Rollback, cfg.calm = Rates{}, 0, 1, false, true
	return cfg
}

// bill is what auditors ask of the bucket, and what they have for it. Sim.mu guards it.
type bill struct {
	puts, slotGets, objectGets, deletes int
	looks                               int             // at keys whose object is gone
	outputs                             map[string]int  // what the objects that were committed may cost
	slots                               map[string]bool // that the commits took rows from
	objects                             int             // likewise, once for each commit
	gone                                map[string]int  // keys, by how often their delete was asked for
}

func newBill() bill {
	return bill{outputs: map[string]int{}, slots: map[string]bool{}, gone: map[string]int{}}
}

// request takes in one of an auditor's. s.mu is held.
func (b *bill) request(c *call) {
	parsed, err := segment.ParseKey(c.object)
	if err != nil {
		return // a listing
	}
	object := parsed.Kind == segment.KeyStream || parsed.Kind == segment.KeyPack
	switch {
	case c.op == objstore.OpDelete:
		b.deletes++
	case c.op == objstore.OpGet || c.op == objstore.OpHead:
		if object && b.gone[c.object] > 0 {
			b.looks++
		} else if object {
			b.objectGets++
		} else if parsed.Kind == segment.KeySlot {
			b.slotGets++
		}
	case object && c.op.Mutation() && c.op != objstore.OpAbort: // an abort is free
		b.puts++
	}
}

// committed takes in what a rewrite made of what.
func (s *Sim) committed(p *process, r catalog.Rewrite) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.audits {
		return
	}
	s.bill.outputs[r.Key] = s.requestsOf(r.Key)
	sources := map[string]bool{}
	for _, run := range r.Runs {
		for i := range run.Expect {
			if ref := &run.Expect[i]; ref.Kind == catalog.RefSlot {
				s.bill.slots[ref.Key] = true
			} else {
				sources[ref.Key] = true
			}
		}
	}
	s.bill.objects += len(sources)
}

// asked takes in the keys of a delete.
func (s *Sim) asked(p *process, keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if p.audits {
			s.bill.gone[key]++
		}
	}
}

// cost is I9 by counters, at the end of a run in which nothing went wrong: an output is one
// PUT, or an upload of its parts; a slot is read once, its footer and its rows; an object
// likewise for each rewrite that takes from it, and its footer twice before it is reaped; a
// key is deleted once.
func (k *checker) cost() {
	s := k.sim
	if !s.cfg.calm {
		return
	}
	s.mu.Lock()
	b := s.bill
	s.mu.Unlock()
	puts, reaped := 0, 0
	for _, n := range b.outputs {
		puts += n
	}
	for _, key := range slices.Sorted(maps.Keys(b.gone)) {
		parsed, err := segment.ParseKey(key)
		if err == nil && (parsed.Kind == segment.KeyStream || parsed.Kind == segment.KeyPack) {
			reaped++
		}
		if b.gone[key] > 1 {
			k.violated("I9", "the delete of %s was asked for %d times", key, b.gone[key])
		}
	}
	k.within("PUT-like requests for the outputs", b.puts, puts)
	k.within("GETs of slots for the slots settled", b.slotGets, 2*len(b.slots))
	stood := s.cover["duty reap-check: stand"] + s.cover["duty reap-check: gc-worthy"] // looked at, and kept
	k.within("GETs of objects for the rewrites and the reaped", b.objectGets, 2*b.objects+2*reaped+stood)
	k.within("last looks at keys of the reaped", b.looks, 2*reaped)
	k.within("deletes for the keys", b.deletes, len(b.gone))
	s.cover["cost outputs"] += len(b.outputs)
	s.cover["cost reaped"] += reaped
}

func (k *checker) within(what string, n, limit int) {
	if n > limit {
		k.violated("I9", "%d %s, at most %d", n, what, limit)
	}
}

// endPasses has the auditors come to the end of what they are at: a rewrite that is cut off
// is one that costs twice.
func (s *Sim) endPasses() {
	s.mu.Lock()
	s.terms["auditors"] = true
	s.mu.Unlock()
	_ = s.calmly(func() error { s.auditing.Wait(); return nil }) // its error is the function's
}

// requestsOf is how many PUT-like requests an object of its size costs.
func (s *Sim) requestsOf(key string) int {
	o := s.check.objects[key]
	if o == nil || o.size < s.cfg.PartSize {
		return 1
	}
	return 2 + int((o.size+s.cfg.PartSize-1)/s.cfg.PartSize)
}
