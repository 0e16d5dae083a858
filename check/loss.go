package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// ErrNotLost: the span can be read whole, so nobody may give it up.
var ErrNotLost = errors.New("check: not lost")

// LossCatalog is what the proof of a loss reads.
type LossCatalog interface {
	Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error)
	Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error)
	Marker(ctx context.Context, d catalog.Duty, id string) (catalog.Marker, error)
	Topologies(ctx context.Context) ([]catalog.Topology, error)
	Chains(ctx context.Context) ([]catalog.ChainRow, error)
	Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error)
}

// Loss is what giving up an object's rows means, and what proves that it may be done.
type Loss struct {
	Key    string     `json:"key"`
	Stream string     `json:"stream,omitempty"` // none: a void slot
	Spans  []LostSpan `json:"spans"`
	Rows   uint64     `json:"rows"`
	// SoundRows of them can still be read, by who copies them before they go as well.
	SoundRows uint64     `json:"sound_rows"`
	Looks     []LossLook `json:"looks"`
}

// LostSpan is the live rows of one ref.
type LostSpan struct {
	Epoch segment.Epoch `json:"epoch"`
	First segment.Seq   `json:"first"`
	Last  segment.Seq   `json:"last"`
	// Rows and times are the ref's; one that live_from cuts had more rows than still live.
	Rows    uint64 `json:"rows"`
	MinTime int64  `json:"min_time"`
	MaxTime int64  `json:"max_time"`
	// Sound is what can be read of it still.
	Sound []SoundRows `json:"sound,omitempty"`
}

// SoundRows are rows that can be read in spite of the loss around them.
type SoundRows struct {
	First segment.Seq `json:"first"`
	Last  segment.Seq `json:"last"`
	Rows  uint64      `json:"rows"`
}

// LossLook is what one look at one bucket met.
type LossLook struct {
	Bucket string `json:"bucket"`
	Why    string `json:"why"`
}

// lossLooks: one look may meet a proxy's or a disk's bad moment.
const lossLooks = 2

// ProveLoss proves that what a stream's live refs have in an object cannot be read whole
// from any bucket of its class's set, looking twice. A span that one bucket has whole is
// ErrNotLost; a read that could not be completed is its own error, and proves nothing; nor
// does a catalog that was rolled back.
func ProveLoss(ctx context.Context, cat LossCatalog, classes objstore.Classes, key, stream string) (*Loss, error) {
	return proveLoss(ctx, cat, classes, &lossProof{key: key, loss: &Loss{Key: key, Stream: stream, Spans: []LostSpan{}}})
}

func proveLoss(ctx context.Context, cat LossCatalog, classes objstore.Classes, p *lossProof) (*Loss, error) {
	key, stream := p.key, p.loss.Stream
	if err := headsOf(ctx, cat, classes); err != nil {
		return nil, err
	}
	refs, err := liveOf(ctx, cat, key, stream)
	if err != nil {
		return nil, err
	}
	if p.set, err = classes.Set(string(refs[0].Class)); err != nil {
		return nil, err
	}
	for i := range refs {
		if err := p.span(ctx, &refs[i]); err != nil {
			return nil, err
		}
	}
	// What was proven is what stands: a rewrite or a trim meanwhile is looked at anew.
	now, err := liveOf(ctx, cat, key, stream)
	if err != nil {
		return nil, err
	}
	if !sameRefs(refs, now) {
		return nil, fmt.Errorf("%w: the refs of stream %q in %s changed meanwhile: try again", catalog.ErrConflict, stream, key)
	}
	return p.loss, nil
}

// liveOf are the stream's live refs that name the key, in order.
func liveOf(ctx context.Context, cat LossCatalog, key, stream string) (refs []catalog.LiveRef, err error) {
	all, err := cat.Liveness(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if l.Stream == stream && !l.Dead(l.LiveFrom) {
			refs = append(refs, l)
		}
	}
	if len(refs) == 0 {
		return nil, catalog.NothingToLose(key, stream)
	}
	return refs, nil
}

func sameRefs(a, b []catalog.LiveRef) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Same(&b[i].Ref) {
			return false
		}
	}
	return true
}

// lossProof is one run of ProveLoss.
type lossProof struct {
	key  string
	set  []*objstore.Store
	loss *Loss
	// unread: an operator said that the reads of the object fail for good.
	unread bool
	hows   map[string]string // of a bucket and ref, how its first look ended
}

// span proves the loss of one ref's rows, and notes what can still be read of them.
func (p *lossProof) span(ctx context.Context, ref *catalog.LiveRef) error {
	first := ref.First
	if ref.LiveFrom.Epoch == ref.Epoch {
		first = max(first, ref.LiveFrom.Seq)
	}
	found := &readable{ref: ref, from: first, unread: p.unread}
	for range p.looks() {
		for _, store := range p.set {
			why, err := found.look(ctx, store, p.key)
			if err == nil && p.unread {
				err = p.same(ctx, store, ref, why)
			}
			if err != nil {
				return fmt.Errorf("%w; what cannot be asked for is not lost: try again when %s answers%s", err, store.Name(), p.hint(ctx, store, err))
			}
			p.loss.Looks = append(p.loss.Looks, LossLook{store.Name(), why})
			if found.whole() {
				return fmt.Errorf("%w: rows %d to %d of stream %q stand whole in %s, in %s: nothing is given up; if readers fail there, run fsck --deep",
					ErrNotLost, first, ref.Last, ref.Stream, p.key, store.Name())
			}
		}
	}
	sound := found.sound()
	for _, s := range sound {
		p.loss.SoundRows += s.Rows
	}
	p.loss.Rows += ref.Rows
	p.loss.Spans = append(p.loss.Spans, LostSpan{
		Epoch: ref.Epoch, First: first, Last: ref.Last, Rows: ref.Rows, MinTime: ref.MinTime, MaxTime: ref.MaxTime, Sound: sound,
	})
	return nil
}

// ProveVoid says what a void slot that waits for a word holds, as far as it tells: its
// rows never entered the history, so there is nothing to prove. The rest is
// catalog.ErrNotFound.
func ProveVoid(ctx context.Context, cat LossCatalog, classes objstore.Classes, key string) (*Loss, error) {
	k, err := segment.ParseKey(key)
	if err != nil || k.Kind != segment.KeySlot {
		return nil, catalog.NothingToLose(key, "")
	}
	if err := headsOf(ctx, cat, classes); err != nil {
		return nil, err
	}
	slots, err := cat.Slots(ctx, k.Chain, k.ID, 1)
	if err != nil {
		return nil, err
	}
	if len(slots) == 0 || slots[0].ID != k.ID || !slots[0].Void {
		return nil, catalog.NothingToLose(key, "")
	}
	m, err := cat.Marker(ctx, catalog.DutySettle, catalog.SettleID(k.Chain, k.ID))
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, catalog.NothingToLose(key, "")
	}
	if err != nil {
		return nil, err
	}
	set, err := classes.Set(string(m.Class))
	if err != nil {
		return nil, err
	}
	loss := &Loss{Key: key, Spans: []LostSpan{}}
	o, err := readObject(ctx, set[0], key)
	switch {
	case err == nil:
		loss.describe(&o)
		loss.Looks = append(loss.Looks, LossLook{set[0].Name(), fmt.Sprintf("void: %s", m.LastError)})
	case unsound(err) || errors.Is(err, objstore.ErrNotFound):
		loss.Looks = append(loss.Looks, LossLook{set[0].Name(), fmt.Sprintf("%s; what it holds is not known: %v", m.LastError, err)})
	default:
		return nil, fmt.Errorf("%w; nobody can say what would be given up: try again when %s answers", err, set[0].Name())
	}
	return loss, nil
}

// describe takes a void slot's own word of what is in it.
func (l *Loss) describe(o *object) {
	for i := range o.footer.Chunks {
		if c := &o.footer.Chunks[i]; c.Stream != "" {
			l.Rows += c.Rows
			l.Spans = append(l.Spans, LostSpan{Epoch: c.Epoch, First: c.First, Last: c.Last, Rows: c.Rows, MinTime: c.MinTime, MaxTime: c.MaxTime})
		}
	}
}
