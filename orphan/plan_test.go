package orphan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
)

func TestPlanJudgesOnlyWhatIsOldAndOver(t *testing.T) {
	now := time.Unix(100_000, 0)
	s := catalog.Settings{OrphanGrace: catalog.Margin{Seeded: true, Value: time.Hour}}
	old := catalog.Intent{State: catalog.IntentStanding, Announced: now.Add(-time.Hour), Deadline: now}
	for name, c := range map[string]struct {
		change func(*catalog.Intent)
		refs   int
		want   Outcome
	}{
		"old, its job over":             {func(*catalog.Intent) {}, 0, WouldJudge},
		"a second too young":            {func(i *catalog.Intent) { i.Announced = i.Announced.Add(time.Second) }, 0, TooYoung},
		"K2: its job may still publish": {func(i *catalog.Intent) { i.Deadline = now.Add(1) }, 0, TooYoung},
		"a ref names it":                {func(*catalog.Intent) {}, 1, IsNamed},
		"condemned before":              {func(i *catalog.Intent) { i.State = catalog.IntentCondemned }, 0, WouldJudge},
		"burned a day ago":              {func(i *catalog.Intent) { i.State, i.Changed = catalog.IntentBurned, now.Add(-catalog.BurnDelay) }, 0, WouldJudge},
		"burned just now":               {func(i *catalog.Intent) { i.State, i.Changed = catalog.IntentBurned, now }, 0, TooYoung},
	} {
		in := old
		c.change(&in)
		if got, reason := plan(now, s, in, c.refs); got != c.want || reason == "" {
			t.Errorf("%s: %s (%q), want %s", name, got, reason, c.want)
		}
	}
	if got, _ := plan(now, catalog.Settings{}, old, 0); got != WouldJudge {
		t.Errorf("a grace that nobody seeded is the default of an hour: %s", got)
	}
}

// uploadStore is a bucket of uploads whose aborts misbehave.
type uploadStore struct {
	standing []objstore.Upload
	aborts   []string
	listErr  error
	abort    func(n int, id string) (gone bool, err error)
	after    func(n int) // each abort
}

func (s *uploadStore) ListUploads(context.Context, string) ([]objstore.Upload, error) {
	return slices.Clone(s.standing), s.listErr
}

func (s *uploadStore) Abort(_ context.Context, key, id string) error {
	s.aborts = append(s.aborts, id)
	gone, err := true, error(nil)
	if s.abort != nil {
		gone, err = s.abort(len(s.aborts), id)
	}
	if gone {
		s.standing = slices.DeleteFunc(s.standing, func(u objstore.Upload) bool { return u.Key == key && u.ID == id })
	}
	if s.after != nil {
		s.after(len(s.aborts))
	}
	return err
}

func TestK36AbortsAreRepeatedUntilNoneIsLeft(t *testing.T) {
	const key = "obj/000/s/1"
	up := func(id string) objstore.Upload { return objstore.Upload{Key: key, ID: id} }
	other := objstore.Upload{Key: key + "0", ID: "other"} // K38: the listing matches by prefix

	t.Run("recorded and listed", func(t *testing.T) {
		s := &uploadStore{standing: []objstore.Upload{up("listed"), other}}
		a, err := abortUploads(t.Context(), s, key, []string{"recorded"})
		if err != nil || a.Aborted < 2 || a.Failed != 0 {
			t.Fatalf("%+v (%v)", a, err)
		}
		if len(s.standing) != 1 || s.standing[0] != other || slices.Contains(s.aborts, "other") {
			t.Fatalf("%v stand after aborts of %v", s.standing, s.aborts)
		}
		if n := count(s.aborts, "recorded"); n != 2 {
			t.Fatalf("the recorded id was aborted %d times, want twice: a part may race the first", n)
		}
	})
	t.Run("an abort that fails is counted and repeated", func(t *testing.T) {
		s := &uploadStore{standing: []objstore.Upload{up("a")}}
		s.abort = func(n int, _ string) (bool, error) {
			if n <= 4 {
				return false, fmt.Errorf("abort: %w", objstore.ErrUnavailable)
			}
			return true, nil
		}
		a, err := abortUploads(t.Context(), s, key, nil)
		if err != nil || a.Failed != 4 || len(s.standing) != 0 {
			t.Fatalf("%+v (%v), %v stand", a, err, s.standing)
		}
	})
	t.Run("a lost answer is repeated", func(t *testing.T) {
		s := &uploadStore{standing: []objstore.Upload{up("a")}}
		s.abort = func(n int, _ string) (bool, error) {
			if n == 1 {
				return true, objstore.ErrAmbiguous
			}
			return true, nil
		}
		if a, err := abortUploads(t.Context(), s, key, nil); err != nil || a.Failed != 1 {
			t.Fatalf("%+v (%v)", a, err)
		}
	})
	t.Run("one that appears meanwhile", func(t *testing.T) {
		s := &uploadStore{standing: []objstore.Upload{up("a")}}
		s.after = func(n int) {
			if n == 1 {
				s.standing = append(s.standing, up("b"))
			}
		}
		if _, err := abortUploads(t.Context(), s, key, nil); err != nil || len(s.standing) != 0 {
			t.Fatalf("%v stand (%v)", s.standing, err)
		}
	})
	t.Run("what never goes is an error, in bounded rounds", func(t *testing.T) {
		s := &uploadStore{standing: []objstore.Upload{up("a")}}
		s.abort = func(int, string) (bool, error) { return false, nil }
		if _, err := abortUploads(t.Context(), s, key, nil); err == nil || len(s.aborts) > abortRounds {
			t.Fatalf("%v after %d aborts", err, len(s.aborts))
		}
	})
	t.Run("a listing that fails is an error", func(t *testing.T) {
		s := &uploadStore{listErr: objstore.ErrUnavailable}
		if _, err := abortUploads(t.Context(), s, key, nil); !errors.Is(err, objstore.ErrUnavailable) {
			t.Fatalf("%v", err)
		}
	})
	t.Run("a cancelled ctx aborts nothing", func(t *testing.T) {
		s := &uploadStore{standing: []objstore.Upload{up("a")}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := abortUploads(ctx, s, key, nil); err == nil || len(s.aborts) != 0 {
			t.Fatalf("%v after %d aborts", err, len(s.aborts))
		}
	})
}

func count(ids []string, id string) (n int) {
	for _, i := range ids {
		if i == id {
			n++
		}
	}
	return n
}
