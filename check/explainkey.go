package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// KeyFacts is all that bucket and catalog say of a key.
type KeyFacts struct {
	Key         string        `json:"key"`
	Kind        string        `json:"kind"`
	Now         time.Time     `json:"now"`
	ReadGrace   time.Duration `json:"read_grace_ns"`
	OrphanGrace time.Duration `json:"orphan_grace_ns"`
	Copies      []Copy        `json:"copies"`
	// Refs are at most maxRefFacts; RefsTotal and LiveRefs count all.
	Refs      []RefFact `json:"refs"`
	RefsTotal int       `json:"refs_total"`
	LiveRefs  int       `json:"live_refs"`
	LiveRows  uint64    `json:"live_rows"`
	Streams   int       `json:"streams"`
	// LiveBytes and DeadBytes are stored bytes of chunks, if the footer could be read.
	LiveBytes  int64         `json:"live_bytes"`
	DeadBytes  int64         `json:"dead_bytes"`
	Generation uint32        `json:"generation,omitempty"`
	Intent     *IntentFact   `json:"intent,omitempty"`
	Markers    []*MarkerFact `json:"markers"`
	Uploads    int           `json:"uploads"`
	Chain      *ChainFact    `json:"chain,omitempty"`
	Slot       *SlotFact     `json:"slot,omitempty"`
	Audit      []string      `json:"audit,omitempty"` // what was recorded of the key, oldest first

	key segment.Key
}

// ChainFact is a chain's row.
type ChainFact struct {
	Chain       string             `json:"chain"`
	Owner       segment.UUID       `json:"owner"`
	Address     string             `json:"address,omitempty"`
	Term        segment.Term       `json:"term"`
	LeaseEnd    time.Time          `json:"lease_end"`
	Closed      bool               `json:"closed"`
	Settles     bool               `json:"settles"`
	NextSeq     segment.Seq        `json:"next_seq"`
	AbsorbedEnd segment.ID         `json:"absorbed_end"`
	Rewritten   segment.ID         `json:"rewritten"`
	Condemned   segment.ID         `json:"condemned"`
	CondemnedAt time.Time          `json:"condemned_at,omitzero"`
	Trimmed     segment.ID         `json:"trimmed"`
	Watermark   segment.Seq        `json:"watermark_seq"`
	WatermarkID segment.ID         `json:"watermark_segment"`
	Consumers   []segment.Consumer `json:"consumers"`
	// Owes is the earliest slot of the chain that owes a settle, with its marker.
	Owes   segment.ID  `json:"owes_settle_from,omitempty"`
	OwesBy *MarkerFact `json:"owes_settle_marker,omitempty"`
}

// SlotFact is what was absorbed at a position.
type SlotFact struct {
	ID     segment.ID   `json:"id"`
	First  segment.Seq  `json:"first"`
	Next   segment.Seq  `json:"next"`
	UUID   segment.UUID `json:"uuid"`
	Term   segment.Term `json:"term"`
	Owner  segment.UUID `json:"owner"`
	Sealed time.Time    `json:"sealed,omitzero"`
	Void   bool         `json:"void,omitempty"`
	Closed bool         `json:"closed,omitempty"`
}

// maxRefFacts bounds the refs that facts list.
const maxRefFacts = 100

// Explainer explains keys and rows.
type Explainer struct {
	Catalog ExplainCatalog
	Classes objstore.Classes
}

// Key explains a key: a pure core over what is gathered here. A key of which neither bucket nor
// catalog knows anything is ErrNothing.
func (x *Explainer) Key(ctx context.Context, key string) (*Explanation, error) {
	f, err := x.gather(ctx, key)
	if err != nil {
		return nil, err
	}
	return explainKey(f)
}

// gather reads what is known of a key, the bucket before the catalog, so that a dead object is
// not called missing.
func (x *Explainer) gather(ctx context.Context, key string) (*KeyFacts, error) {
	f := &KeyFacts{Key: key, Kind: "unknown", Refs: []RefFact{}, Markers: []*MarkerFact{}}
	if k, err := segment.ParseKey(key); err == nil {
		f.key, f.Kind = k, k.Kind.String()
	}
	if err := objstore.CheckKey(key); err != nil {
		return nil, fmt.Errorf("%w: %q is no key: %w", ErrNothing, key, err)
	}
	var footer *segment.Footer
	for _, step := range []func(context.Context, *KeyFacts) error{
		x.times, x.chain, x.slot, func(ctx context.Context, f *KeyFacts) (err error) {
			footer, err = x.copies(ctx, f)
			return err
		}, func(ctx context.Context, f *KeyFacts) error { return x.refs(ctx, f, footer) }, x.intent, x.markers, x.uploads, x.audited,
	} {
		if err := step(ctx, f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (x *Explainer) times(ctx context.Context, f *KeyFacts) (err error) {
	settings, err := x.Catalog.Settings(ctx)
	if err != nil {
		return err
	}
	if f.Now, err = x.Catalog.Now(ctx); err != nil {
		return err
	}
	f.ReadGrace = settings.ReadGrace.Deleting(f.Now, catalog.DefaultReadGrace)
	f.OrphanGrace = settings.OrphanGrace.Deleting(f.Now, catalog.DefaultOrphanGrace)
	return nil
}

// copies looks in every bucket that is given, and reads the first footer that stands.
func (x *Explainer) copies(ctx context.Context, f *KeyFacts) (footer *segment.Footer, err error) {
	for _, class := range slices.Sorted(maps.Keys(x.Classes)) {
		for i, store := range x.Classes[class] {
			c := Copy{Class: class, Bucket: store.Name(), Deciding: i == 0}
			info, err := store.Head(ctx, f.Key)
			if err != nil && !errors.Is(err, objstore.ErrNotFound) {
				return nil, fmt.Errorf("look for %s in %s: %w", f.Key, store.Name(), err)
			}
			if err == nil {
				c.Exists, c.Bytes, c.Put = true, info.Size, info.Modified
				if err := f.open(ctx, store, &c, &footer); err != nil {
					return nil, err
				}
			}
			f.Copies = append(f.Copies, c)
		}
	}
	return footer, nil
}

func (f *KeyFacts) open(ctx context.Context, store *objstore.Store, c *Copy, footer **segment.Footer) error {
	if k := f.key.Kind; k != segment.KeySlot && k != segment.KeyStream && k != segment.KeyPack {
		return nil
	}
	o, err := readObject(ctx, store, f.Key)
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		c.Exists = false // since
	case unsound(err):
		c.Broken = err.Error()
	case refused(err) && ctx.Err() == nil:
		c.Unread = err.Error() // what else is known is still told
	case err != nil:
		return fmt.Errorf("read the footer of %s: %w", f.Key, err)
	case *footer == nil:
		*footer = o.footer
	}
	return nil
}

// refs counts who names the key, and how much of the object is live, chunk by chunk as a
// probe does.
func (x *Explainer) refs(ctx context.Context, f *KeyFacts, footer *segment.Footer) error {
	refs, err := x.Catalog.Liveness(ctx, f.Key)
	if err != nil {
		return err
	}
	streams := map[int64]bool{}
	f.RefsTotal = len(refs)
	for i := range refs {
		r := refFact(&refs[i].Ref, refs[i].LiveFrom)
		f.Generation = refs[i].Generation
		streams[refs[i].StreamID] = true
		if !r.Dead {
			f.LiveRefs++
			f.LiveRows += r.Rows
			if footer != nil {
				r.Trouble = coverage(footer, &refs[i].Ref)
			}
		}
		if len(f.Refs) < maxRefFacts || r.Trouble != "" && len(f.Refs) < 2*maxRefFacts {
			f.Refs = append(f.Refs, r)
		}
	}
	f.Streams = len(streams)
	if footer != nil {
		f.weigh(footer, refs)
	}
	return nil
}

func (f *KeyFacts) weigh(footer *segment.Footer, refs []catalog.LiveRef) {
	of := map[spanOf][]*catalog.LiveRef{}
	for i := range refs {
		k := spanOf{refs[i].Stream, refs[i].Epoch}
		of[k] = append(of[k], &refs[i])
	}
	for i := range footer.Chunks {
		c := &footer.Chunks[i]
		if c.Stream == "" {
			continue // a slot's frames that are no rows
		}
		live := slices.ContainsFunc(of[spanOf{c.Stream, c.Epoch}], func(r *catalog.LiveRef) bool {
			return overlaps(c, &r.Ref) && !(segment.Pos{Epoch: c.Epoch, Seq: min(c.Last, r.Last)}).Less(r.LiveFrom)
		})
		if f.Generation = max(f.Generation, c.Generation); live {
			f.LiveBytes += c.Stored
		} else {
			f.DeadBytes += c.Stored
		}
	}
}

func (x *Explainer) intent(ctx context.Context, f *KeyFacts) error {
	in, err := x.Catalog.Intent(ctx, f.Key)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	f.Intent = &IntentFact{
		State: string(in.State), Serves: in.Serves, Announced: in.Announced, Deadline: in.Deadline, Changed: in.Changed,
		JudgedAt: catalog.JudgeAt(&in, f.OrphanGrace), Uploads: len(in.Uploads),
	}
	return nil
}

// markers that concern a key of its kind.
func (x *Explainer) markers(ctx context.Context, f *KeyFacts) error {
	of := map[catalog.Duty]string{}
	switch f.key.Kind {
	case segment.KeySlot:
		of[catalog.DutySettle] = catalog.SettleID(f.key.Chain, f.key.ID)
		of[catalog.DutyTrimCheck], of[catalog.DutyReclaim] = catalog.ChainID(f.key.Chain), catalog.ChainID(f.key.Chain)
	case segment.KeyPack:
		of[catalog.DutyPackMerge] = catalog.PackMergeID(f.key.Chain, f.Generation)
		fallthrough
	case segment.KeyStream:
		for _, d := range []catalog.Duty{catalog.DutyGC, catalog.DutyTailFill, catalog.DutyReapCheck, catalog.DutyOrphan} {
			of[d] = f.Key
		}
	}
	for _, duty := range slices.Sorted(maps.Keys(of)) {
		m, err := x.Catalog.Marker(ctx, duty, of[duty])
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		f.Markers = append(f.Markers, markerFact(&m))
	}
	return nil
}

func (f *KeyFacts) marker(d catalog.Duty) *MarkerFact {
	for _, m := range f.Markers {
		if m.Duty == d {
			return m
		}
	}
	return nil
}
