package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// wayPages bounds the look for older objects of a row.
const wayPages = 20

// rowWay lists the objects that had the row before the one that serves it: its slot, and
// what intents and reap-checks still know under keys that can have held it.
func (x *Explainer) rowWay(ctx context.Context, f *RowFacts, q *RowQuestion) error {
	c, ok := f.chain()
	if !ok {
		return nil
	}
	f.Way = append(f.Way, f.slotStep())
	for _, prefix := range []string{segment.StreamPrefix(q.Stream), segment.PackChainPrefix(c)} {
		steps := map[string]string{}
		var order []string
		note := func(key, what string) {
			if key == f.servedBy() || !f.mayHaveHeld(key) {
				return
			}
			if steps[key] == "" {
				order = append(order, key)
			}
			steps[key] = what
		}
		if err := x.reapChecks(ctx, prefix, func(m *catalog.Marker) {
			note(m.ID, "may have held it, and is to be looked at by a reap-check "+markerFact(m).when(f.Now))
		}); err != nil {
			return err
		}
		if err := x.intentsUnder(ctx, prefix, func(in *catalog.Intent) {
			note(in.Key, fmt.Sprintf("may have held it: %s %s, for %s", in.State, relative(f.Now, in.Changed), in.Serves))
		}); err != nil {
			return err
		}
		for _, key := range order {
			f.Way = append(f.Way, key+" "+steps[key])
		}
	}
	if f.Ref != nil && f.Ref.Key != "" && f.Ref.Kind != string(catalog.RefSlot) {
		f.Way = append(f.Way, fmt.Sprintf("%s %s, revision %d, %s", f.Ref.Kind, f.Ref.Key, f.Ref.Revision, f.serves()))
	}
	return nil
}

func (f *RowFacts) servedBy() string {
	if f.Ref == nil {
		return ""
	}
	return f.Ref.Key
}

func (f *RowFacts) serves() string {
	if f.pos().Less(f.LiveFrom) {
		return "still holds it, and serves it to nobody"
	}
	return "serves it now"
}

// slotStep is the row's first stop.
func (f *RowFacts) slotStep() string {
	if f.Slot == nil {
		return "its segment is not known any more: its slot was trimmed, and the row of it forgotten"
	}
	what := f.serves()
	switch c := f.Chain; {
	case f.Slot.ID < c.Trimmed:
		what = "trimmed: deleted (slot rows below trimmed may stand for several slots)"
	case f.Slot.ID < c.Condemned:
		what = "condemned " + relative(f.Now, c.CondemnedAt)
	case f.servedBy() == f.SlotKey:
	case c.Owes != 0 && c.Owes <= f.Slot.ID:
		what = "stands for other rows"
	default:
		what = "rewritten, waits for its trim"
	}
	return fmt.Sprintf("segment %s, slot %s: %s", f.Slot.UUID, f.SlotKey, what)
}

// mayHaveHeld goes by the key: a stream object that begins at or below the row, or a pack of
// a range of slots with the row's.
func (f *RowFacts) mayHaveHeld(key string) bool {
	k, err := segment.ParseKey(key)
	if err != nil || k.Chain.Epoch != f.Epoch {
		return false
	}
	switch k.Kind {
	case segment.KeyStream:
		return k.IsOf(f.Stream) && k.First <= f.Seq
	case segment.KeyPack:
		return f.Slot != nil && k.ID <= f.Slot.ID && f.Slot.ID <= k.LastID
	default:
		return false
	}
}

func (x *Explainer) reapChecks(ctx context.Context, prefix string, each func(*catalog.Marker)) error {
	after := prefix
	for range wayPages {
		page, err := x.Catalog.MarkersOf(ctx, catalog.DutyReapCheck, after, 1000)
		if err != nil {
			return err
		}
		for i := range page {
			if after = page[i].ID; !strings.HasPrefix(after, prefix) {
				return nil
			}
			each(&page[i])
		}
		if len(page) < 1000 {
			return nil
		}
	}
	return nil
}

func (x *Explainer) intentsUnder(ctx context.Context, prefix string, each func(*catalog.Intent)) error {
	after := prefix
	for range wayPages {
		page, err := x.Catalog.Intents(ctx, after, 1000)
		if err != nil {
			return err
		}
		for i := range page {
			if after = page[i].Key; !strings.HasPrefix(after, prefix) {
				return nil
			}
			each(&page[i])
		}
		if len(page) < 1000 {
			return nil
		}
	}
	return nil
}
