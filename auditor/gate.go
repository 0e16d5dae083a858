package auditor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

// gate stands before all that moves a chain on or deletes: the verbs in gatedverbs.go, each
// head's write and each delete (orphan.Deleter), and the passes of duties that do nothing
// else (take). It lets them through by a look at every chain's head: one row behind its head
// is a catalog that was rolled back (03 §0), and stops all, for a chain whose own head tells
// nothing may have lost as much. A look costs a GET a chain, so it is believed for a while
// (headsFresh), and ends sooner with the catalog's session: whatever is let through is bound
// to the session that was looked at.
//
// What is left open: a catalog that goes back without the end of its session (an old dump read into
// a database that serves; an engine that cannot tell) is noticed by the next look, and until
// then a head may go on with the older rows, ahead of the newest copy. And requests that were
// sent before a fail-over may arrive behind it: a head with what the newest copy has, or
// the delete of what that copy gave up.
type gate struct {
	cat     catalog.Catalog
	classes objstore.Classes
	clock   func() time.Time
	note    func(ctx context.Context, err error) // of every answer; nil: none

	turn chan struct{} // capacity 1: whoever has it has last
	last headLook
}

// headLook is one look at all chains' heads.
type headLook struct {
	number  int // from 1 on
	session catalog.Session
	from    time.Time // it is believed from then, for a clock that was set back would stretch it,
	until   time.Time // and until then; zero: not at all
}

// headsFresh bounds how long a look at the heads is believed: a catalog may go back without a
// sign of its own. So it is also an eighth of the grace at most, for it may lose less than one
// grace (03 §0).
const (
	headsFresh      = 10 * time.Second
	headsFreshShare = 8
)

func newGate(cat catalog.Catalog, classes objstore.Classes, clock func() time.Time) *gate {
	return &gate{cat: cat, classes: classes, clock: clock, turn: make(chan struct{}, 1)}
}

// through is the catalog.Gate.
func (g *gate) through(ctx context.Context, act func(ctx context.Context) error) error {
	for ended, again := 0, true; ; again = false {
		l, err := g.pass(ctx, ended)
		if err == nil {
			err = act(catalog.Within(ctx, l.session))
		}
		if !again || !errors.Is(err, catalog.ErrSessionEnded) {
			return err
		}
		ended = l.number
	}
}

// open is through for no act.
func (g *gate) open(ctx context.Context) error {
	return g.through(ctx, func(context.Context) error { return nil })
}

// pass gives the last look if it is still believed, and not one whose session was seen to have
// ended; else it looks.
func (g *gate) pass(ctx context.Context, ended int) (headLook, error) {
	select {
	case g.turn <- struct{}{}:
	case <-ctx.Done():
		return headLook{}, context.Cause(ctx)
	}
	defer func() { <-g.turn }()
	var err error
	if now := g.clock(); g.last.number <= ended || now.Before(g.last.from) || !now.Before(g.last.until) {
		err = g.lookAnew(ctx)
	}
	if g.note != nil {
		g.note(ctx, err)
	}
	return g.last, err
}

// lookAnew replaces the last look. It counts from before its first read.
func (g *gate) lookAnew(ctx context.Context) error {
	at := g.clock()
	g.last = headLook{number: g.last.number + 1}
	session, err := g.cat.Session(ctx)
	if err != nil {
		return fmt.Errorf("read the catalog's session: %w", err)
	}
	ctx = catalog.Within(ctx, session) // heads of one session held against rows of another say nothing
	settings, err := g.cat.Settings(ctx)
	if err != nil {
		return fmt.Errorf("read the read grace: %w", err)
	}
	if err := g.checkHeads(ctx); err != nil {
		return err
	}
	share := settings.ReadGrace.Deleting(at, catalog.DefaultReadGrace) / headsFreshShare
	g.last.session, g.last.from, g.last.until = session, at, at.Add(min(headsFresh, share))
	return nil
}

func (g *gate) checkHeads(ctx context.Context) error {
	topologies, err := g.cat.Topologies(ctx)
	if err != nil {
		return err
	}
	rows, err := g.cat.Chains(ctx)
	if err != nil {
		return err
	}
	classes := map[segment.Epoch]segment.Class{}
	for i := range topologies {
		classes[topologies[i].Epoch] = topologies[i].Class
	}
	var errs []error
	away := map[segment.Class]bool{} // of these the first look was in vain, and a second waits as long
	for i := range rows {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		class, ok := classes[rows[i].Epoch]
		if !ok {
			errs = append(errs, catalog.NoTopology(rows[i].Epoch))
			continue
		}
		if away[class] {
			continue
		}
		err := g.checkHead(ctx, class, rows[i].Chain)
		away[class] = errors.Is(err, objstore.ErrUnavailable)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// headPatience bounds the look at one head: absorbs of all classes wait for it, and a bucket
// that hangs would hold each of them up for as long as a call to a store may take.
const headPatience = 10 * time.Second

func (g *gate) checkHead(ctx context.Context, class segment.Class, chain segment.Chain) error {
	set, err := g.classes.Set(string(class))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, headPatience, fmt.Errorf("the bucket of class %s did not answer within %v", class, headPatience))
	defer cancel()
	return reap.CheckHead(ctx, set.First(), g.cat, chain)
}
