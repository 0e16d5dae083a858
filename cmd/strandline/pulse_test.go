package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/settings"
)

// TestPulse: a process is ready while the last good look is no older than its patience, and
// again with the next good one; a look that hangs counts as none.
func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("the bucket is away")
		var mu sync.Mutex // answer, hangs, looks
		var answer error
		hangs := false
		looks := 0
		set := func(err error, hang bool) {
			mu.Lock()
			defer mu.Unlock()
			answer, hangs = err, hang
		}
		p := newPulse(func(ctx context.Context) error {
			mu.Lock()
			looks++
			hang, err := hangs, answer
			mu.Unlock()
			if hang {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return err
		}, 2*time.Second, func() time.Duration { return 10 * time.Second })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error)
		go func() { done <- p.run(ctx) }()
		at := func(after time.Duration, ready bool) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			err := p.ready()
			if (err == nil) != ready {
				t.Fatalf("at %v: %v", time.Now(), err)
			}
			if err != nil && !errors.Is(err, errNotReached) {
				t.Errorf("%v is of another kind", err)
			}
		}
		at(0, true)
		at(time.Hour+time.Second, true) // looked at every even second
		set(away, false)
		at(9*time.Second, true) // the last good look is 10 s old
		at(time.Second, false)  // 11
		if err := p.ready(); !errors.Is(err, away) || !strings.Contains(err.Error(), "for 11s") {
			t.Errorf("it does not say why: %v", err)
		}
		set(nil, false)
		at(time.Second, true) // the next look
		set(nil, true)
		at(13*time.Second, false) // one that hangs until its end counts as none
		set(nil, false)
		at(20*time.Second, true)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if looks > 1900 {
			t.Errorf("%d looks in an hour", looks)
		}
	})
}

// fakeSettings is a catalog's settings row.
type fakeSettings struct {
	settings catalog.Settings
	err      error
}

func (f *fakeSettings) Settings(context.Context) (catalog.Settings, error) { return f.settings, f.err }

func (f *fakeSettings) Now(context.Context) (time.Time, error) { return time.Unix(100, 0), f.err }

// TestReadGraceIsRemembered: while the catalog is away the last known grace counts.
func TestReadGraceIsRemembered(t *testing.T) {
	f := &fakeSettings{settings: catalog.Settings{ReadGrace: catalog.Margin{Seeded: true, Value: time.Minute, Old: time.Minute}}}
	g := &readGrace{catalog: f, value: catalog.DefaultReadGrace}
	if g.get() != catalog.DefaultReadGrace {
		t.Error(g.get())
	}
	if err := g.read(t.Context()); err != nil || g.get() != time.Minute {
		t.Errorf("%v: %v", err, g.get())
	}
	f.err = catalog.ErrUnavailable
	if err := g.read(t.Context()); !errors.Is(err, catalog.ErrUnavailable) || g.get() != time.Minute {
		t.Errorf("%v: %v", err, g.get())
	}
}

// TestLeastMarginsAgree: settings knows no catalog, but they mean the same.
func TestLeastMarginsAgree(t *testing.T) {
	if settings.LeastReadGrace != catalog.LeastReadGrace || settings.LeastOrphanGrace != catalog.LeastOrphanGrace {
		t.Error("settings and catalog have other least graces")
	}
	m := settings.Margins{ReadGrace: time.Minute, OrphanGrace: time.Hour}
	s := catalog.Settings{ReadGrace: catalog.Margin{Seeded: true, Value: m.ReadGrace, Old: m.ReadGrace}}
	if got := s.PlanTTL(time.Unix(100, 0)); got != m.PlanTTL() {
		t.Errorf("the catalog's plans live %v, settings says %v", got, m.PlanTTL())
	}
}

// TestPulseOfAShortGrace: an auditor that reaches all is ready at every moment between two
// looks, also where the read grace is shorter than a turn.
func TestPulseOfAShortGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPulse(func(context.Context) error {
			time.Sleep(time.Second)
			return nil
		}, auditorLooks, func() time.Duration { return auditorPatience(4 * time.Second) })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.run(ctx) }()
		for range 60 {
			time.Sleep(time.Second)
			synctest.Wait()
			if err := p.ready(); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
