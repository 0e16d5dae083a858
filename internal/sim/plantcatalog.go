package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/segment"
)

// catalogPlants are processes that misread the catalog, or leave a verb out.
func catalogPlants() []Plant {
	above := func(name string, rules []string, wrap func(name string, c catalog.Catalog) catalog.Catalog, guards ...memory.Guard) Plant {
		return Plant{name, rules, func(cfg *Config) {
			cfg.skip(guards...)
			cfg.Hooks.Above = wrap
		}}
	}
	return []Plant{
		above("acknowledge shared before the absorb", []string{"I8"}, func(_ string, c catalog.Catalog) catalog.Catalog { return &absorbsLater{Catalog: c} }),
		above("publish n+1 before n is absorbed", []string{"03 §2"}, func(_ string, c catalog.Catalog) catalog.Catalog { return &absorbsLater{Catalog: c} }),
		above("an unknown outcome of an absorb taken for success", []string{"I8", "03 §2"}, func(_ string, c catalog.Catalog) catalog.Catalog { return absorbsBlindly{c} }),
		above("absorb brings dead refs back", []string{"I1", "I2"}, func(_ string, c catalog.Catalog) catalog.Catalog { return &absorbsAgain{Catalog: c} }, memory.DeadRefs),
		above("commit without its intent", []string{"I3"}, func(_ string, c catalog.Catalog) catalog.Catalog { return announcesNothing{c} }, memory.CommitIntent),
		above("reap without condemn", []string{"03 §8"}, func(_ string, c catalog.Catalog) catalog.Catalog { return condemnsNothing{c} }),
		above("retire before the watchers are armed", []string{"I3", "I5"}, func(_ string, c catalog.Catalog) catalog.Catalog { return armsNoWatcher{c} }),
		above("retention ahead of a consumer", []string{"03 §9"}, func(_ string, c catalog.Catalog) catalog.Catalog { return retainsTooLittle{c} }, memory.Consumer),
		above("restart that fences itself", []string{"03 §3"}, func(name string, c catalog.Catalog) catalog.Catalog {
			if name[0] != 'w' {
				return c
			}
			return &knowsNotItself{Catalog: c}
		}),
	}
}

// pretended is what the catalog would have said of an absorb.
func pretended(a *catalog.Absorb) catalog.Absorbed {
	s := &a.Slot
	return catalog.Absorbed{Inserted: len(a.Refs), Chain: catalog.ChainRow{
		Chain: s.Chain, Owner: a.CallerOwner, Term: a.CallerTerm, Closed: s.Closed, AbsorbedEnd: s.ID + 1, LastUUID: s.UUID, LastTerm: s.Term,
		NextSeq: s.Next, Rewritten: 1, Condemned: 1, Trimmed: 1, Consumers: a.Consumers, TrimJournal: 1,
	}}
}

// absorbsLater says that a slot is absorbed before it asks for it: it does when the next
// slot of the chain is published.
type absorbsLater struct {
	catalog.Catalog
	mu   sync.Mutex
	owed map[segment.Chain]catalog.Absorb
}

func (c *absorbsLater) AbsorbSlot(ctx context.Context, a catalog.Absorb) (catalog.Absorbed, error) {
	if a.CallerTerm == 0 || a.Void || a.Slot.Closed {
		return c.Catalog.AbsorbSlot(ctx, a)
	}
	c.mu.Lock()
	old, owes := c.owed[a.Slot.Chain]
	if c.owed == nil {
		c.owed = map[segment.Chain]catalog.Absorb{}
	}
	c.owed[a.Slot.Chain] = a
	c.mu.Unlock()
	if owes && old.Slot.ID < a.Slot.ID {
		if _, err := c.Catalog.AbsorbSlot(ctx, old); err != nil {
			return catalog.Absorbed{}, err
		}
	}
	return pretended(&a), nil
}

// absorbsBlindly takes an absorb whose outcome is unknown for one that happened.
type absorbsBlindly struct{ catalog.Catalog }

func (c absorbsBlindly) AbsorbSlot(ctx context.Context, a catalog.Absorb) (catalog.Absorbed, error) {
	out, err := c.Catalog.AbsorbSlot(ctx, a)
	if errors.Is(err, catalog.ErrAmbiguous) || errors.Is(err, catalog.ErrUnavailable) {
		return pretended(&a), nil
	}
	return out, err
}

// absorbsAgain sends the process's older absorbs once more, as one that begins anew from
// a position it noted long ago.
type absorbsAgain struct {
	catalog.Catalog
	mu   sync.Mutex
	sent []catalog.Absorb
}

func (c *absorbsAgain) AbsorbSlot(ctx context.Context, a catalog.Absorb) (catalog.Absorbed, error) {
	out, err := c.Catalog.AbsorbSlot(ctx, a)
	if err != nil || a.Void {
		return out, err
	}
	c.mu.Lock()
	a.Consumers = nil
	c.sent = append(c.sent, a)
	old := c.sent[len(c.sent)/2]
	c.mu.Unlock()
	_, _ = c.Catalog.AbsorbSlot(ctx, old) // it was absorbed long ago: a no-op, or so it should be
	return out, nil
}

// announcesNothing makes outputs without an intent.
type announcesNothing struct{ catalog.Catalog }

func (c announcesNothing) Announce(_ context.Context, a catalog.Announce) (catalog.Intent, error) {
	return catalog.Intent{
		Key: a.Key, Class: a.Class, Serves: catalog.Serves(a.Holder), Nonce: a.Nonce, Announced: time.Now(), Deadline: time.Now().Add(a.Deadline),
		State: catalog.IntentStanding,
	}, nil
}

func (c announcesNothing) AddUpload(context.Context, string, string, string) error  { return nil }
func (c announcesNothing) DropUpload(context.Context, string, string, string) error { return nil }

// condemnsNothing deletes without having condemned.
type condemnsNothing struct{ catalog.Catalog }

func (c condemnsNothing) CondemnKey(context.Context, catalog.MarkerRef) error { return nil }

// armsNoWatcher retires refs whose objects nobody will look at.
type armsNoWatcher struct{ catalog.Catalog }

func (c armsNoWatcher) ArmWatchers(context.Context, []catalog.Ref) error { return nil }

// retainsTooLittle raises a watermark as far as slots end, whoever has yet to come there.
type retainsTooLittle struct{ catalog.Catalog }

func (c retainsTooLittle) RaiseWatermark(ctx context.Context, w catalog.Watermark) (catalog.ChainRow, error) {
	slots, err := c.Slots(ctx, w.Chain, w.Segment, 0)
	if err != nil {
		return catalog.ChainRow{}, err
	}
	for _, s := range slots {
		if !s.Void && s.Next > w.Seq {
			w.Seq, w.Segment = s.Next-1, s.ID
		}
	}
	return c.Catalog.RaiseWatermark(ctx, w)
}

// knowsNotItself takes the slots of its own directory for another's when it starts.
type knowsNotItself struct {
	catalog.Catalog
	mu   sync.Mutex
	seen map[segment.Chain]bool
}

func (c *knowsNotItself) Chain(ctx context.Context, ch segment.Chain) (catalog.ChainRow, error) {
	row, err := c.Catalog.Chain(ctx, ch)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && !c.seen[ch] && row.Term > 0 && !row.Closed {
		if c.seen == nil {
			c.seen = map[segment.Chain]bool{}
		}
		c.seen[ch] = true
		row.LastTerm = row.Term + 1
	}
	return row, err
}
