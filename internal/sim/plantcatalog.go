package sim

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/segment"
)

// catalogPlants are processes that misread the catalog, or leave a verb out.
func catalogPlants() []Plant {
	above := func(name string, rules []string, wrap func(name string, c catalog.Catalog) catalog.Catalog, guards ...memory.Guard) Plant {
		return Plant{Name: name, Rules: rules, plant: func(cfg *Config) {
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
		above("trim-check without condemned_at", []string{"I4"}, func(_ string, c catalog.Catalog) catalog.Catalog { return looksEarly{c} }, memory.CondemnedAt),
		above("marker without version", []string{"I1", "I3", "I5"}, func(_ string, c catalog.Catalog) catalog.Catalog { return &resolvesLater{Catalog: c} }, memory.Version).in(crowd),
		above("reap at the first look", []string{"I4"}, func(_ string, c catalog.Catalog) catalog.Catalog { return looksOnce{c} }, memory.Confirmed),
		above("liveness by first seq", []string{"I2"}, func(_ string, c catalog.Catalog) catalog.Catalog { return looksAtFirst{c} }, memory.Named),
		above("ref retired without its guard", []string{"I1"}, func(_ string, c catalog.Catalog) catalog.Catalog { return walksTooFar{c} }, memory.Retire),
		above("reap without condemn", []string{"03 §8"}, func(_ string, c catalog.Catalog) catalog.Catalog { return condemnsNothing{c} }),
		above("retire before the watchers are armed", []string{"I3", "I5"}, func(_ string, c catalog.Catalog) catalog.Catalog { return armsNoWatcher{c} }),
		above("retention ahead of a consumer", []string{"03 §9"}, func(_ string, c catalog.Catalog) catalog.Catalog { return retainsTooLittle{c} }, memory.Consumer),
		above("settle keeps the link to the row before a cut", []string{"I7"}, func(_ string, c catalog.Catalog) catalog.Catalog { return linksBeforeCuts{c} }).in(cuts),
		above("a follower takes every trim for one of rows it had", []string{"I7"}, func(_ string, c catalog.Catalog) catalog.Catalog { return missesNothing{c} }),
		above("a reader goes on behind a cut", []string{"I7"}, func(_ string, c catalog.Catalog) catalog.Catalog { return readsBehindCuts{c} }),
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

// resolvesLater resolves what it took when it takes the next: what was armed meanwhile
// has another version by then.
type resolvesLater struct {
	catalog.Catalog
	mu   sync.Mutex
	done []catalog.MarkerRef
}

func (c *resolvesLater) Resolve(_ context.Context, m catalog.MarkerRef) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, m)
	return nil
}

func (c *resolvesLater) TakeDue(ctx context.Context, k catalog.Take) ([]catalog.Marker, error) {
	c.mu.Lock()
	done := c.done
	c.done = nil
	c.mu.Unlock()
	for _, m := range done {
		if err := c.Catalog.Resolve(ctx, m); err != nil {
			return nil, err
		}
	}
	return c.Catalog.TakeDue(ctx, k)
}

// looksEarly runs trim-checks that are not due, as may be: condemned_at is what holds
// slots back then.
type looksEarly struct{ catalog.Catalog }

func (c looksEarly) TakeDue(ctx context.Context, k catalog.Take) ([]catalog.Marker, error) {
	if slices.Contains(k.Duties, catalog.DutyTrimCheck) {
		k.Ahead = time.Hour
	}
	return c.Catalog.TakeDue(ctx, k)
}

// looksOnce reaps at its first look, and takes what is not due.
type looksOnce struct{ catalog.Catalog }

func (c looksOnce) TakeDue(ctx context.Context, k catalog.Take) ([]catalog.Marker, error) {
	if slices.Contains(k.Duties, catalog.DutyReapCheck) {
		k.Ahead = time.Hour
	}
	ms, err := c.Catalog.TakeDue(ctx, k)
	for i := range ms {
		ms[i].Confirmed = ms[i].Duty == catalog.DutyReapCheck
	}
	return ms, err
}

// looksAtFirst asks for refs by their first rows: one that begins below live_from and
// goes on above it looks dead (seed 002).
type looksAtFirst struct{ catalog.Catalog }

func (c looksAtFirst) Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error) {
	refs, err := c.Catalog.Liveness(ctx, key)
	return slices.DeleteFunc(refs, func(l catalog.LiveRef) bool { return l.FirstPos().Less(l.LiveFrom) }), err
}

// walksTooFar retires the ref that live_from cuts in two with those that lie below it.
type walksTooFar struct{ catalog.Catalog }

func (c walksTooFar) WalkStream(ctx context.Context, stream int64, limit int) (catalog.WalkPage, error) {
	w, err := c.Catalog.WalkStream(ctx, stream, limit)
	if w.Straddle != nil {
		w.Dead, w.Straddle = append(w.Dead, *w.Straddle), nil
	}
	return w, err
}

// knowsNotItself takes the slots of its own directory for another's when it starts.
type knowsNotItself struct {
	catalog.Catalog
	mu   sync.Mutex
	owns map[segment.Chain]bool
}

func (c *knowsNotItself) Chain(ctx context.Context, ch segment.Chain) (catalog.ChainRow, error) {
	row, err := c.Catalog.Chain(ctx, ch)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && !c.owns[ch] && row.Term > 0 && !row.Closed {
		row.LastTerm = row.Term + 1
	}
	return row, err
}

func (c *knowsNotItself) AcquireChain(ctx context.Context, a catalog.Acquire) (catalog.ChainRow, error) {
	row, err := c.Catalog.AcquireChain(ctx, a)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		if c.owns == nil {
			c.owns = map[segment.Chain]bool{}
		}
		c.owns[a.Chain] = true
	}
	return row, err
}

// linksBeforeCuts commits an output that begins behind a cut head as what follows the row
// before all that was cut off: who stands there takes the next row for it.
type linksBeforeCuts struct{ catalog.Catalog }

func (c linksBeforeCuts) CommitRewrite(ctx context.Context, r catalog.Rewrite) (catalog.Rewritten, error) {
	r.Runs = slices.Clone(r.Runs)
	for i := range r.Runs {
		r.Runs[i].New.PrevLast = r.Runs[i].Expect[0].PrevLast
	}
	return c.Catalog.CommitRewrite(ctx, r)
}

// missesNothing has whoever asks what follows a cut hear that nothing lay before it.
type missesNothing struct{ catalog.Catalog }

func (c missesNothing) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	p, err := c.Catalog.Plan(ctx, r)
	if r.Limit == 1 && len(p.Refs) > 0 {
		p.Refs[0].PrevLast = segment.Pos{}
	}
	return p, err
}

// readsBehindCuts plans from live_from on, for whoever stands below it.
type readsBehindCuts struct{ catalog.Catalog }

func (c readsBehindCuts) Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	p, err := c.Catalog.Plan(ctx, r)
	if err == nil && r.From.Less(p.LiveFrom) {
		p.LiveFrom = r.From
		if len(p.Refs) > 0 {
			p.Refs[0].PrevLast = segment.Pos{}
		}
	}
	return p, err
}
