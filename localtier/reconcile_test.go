package localtier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// leftOverRows makes "a" a directory with some absorbed segments and some that are not,
// whose chain another fenced.
func (w *world) leftOverRows(t *testing.T) {
	t.Helper()
	cut, at := cutOnce(StepBuilt, 3)
	a := w.open("a", func(o *Options) { o.Cut = cut })
	w.mustAppend(a, "s", AckShared, "one")
	w.mustAppend(a, "s", AckShared, "two")
	for _, p := range []string{"three", "four"} {
		w.mustAppend(a, "s", AckLocal, p)
		mustSeal(t, a.shards[0])
	}
	w.mustAppend(a, "s", AckLocal, "five") // in the open segment
	<-at
	abandon(t, a)
	b := w.open("b", steal)
	w.mustAppend(b, "s", AckShared, "six")
	w.mustClose(b)
	w.acked["s"] = []string{"one", "two", "six"}
}

// TestCutReconcile cuts setting aside after each of its steps. The next start ends it,
// the verdict is the same, and salvage brings back exactly what the chain did not have.
func TestCutReconcile(t *testing.T) {
	for _, step := range []Step{"", StepSetAside, StepAcquired, StepFencePlaced, StepFenced, StepJudged} {
		t.Run(string(step), func(t *testing.T) {
			w := newWorld(t, 1)
			w.leftOverRows(t)
			old := w.identity("a")
			if step != "" {
				cut, _ := cutOnce(step, 1)
				if _, err := w.tryOpen("a", func(o *Options) { o.Cut = cut }); !errors.Is(err, errPower) {
					t.Fatalf("%v", err)
				}
				if left := w.quarantined("a"); len(left) != 1 || left[0].Writer != old {
					t.Fatalf("in quarantine: %+v", left)
				}
			}
			a := w.open("a")
			if now := w.identity("a"); now == old || now != w.chain(0).Owner {
				t.Errorf("owner %s, was %s", now, old)
			}
			left := w.quarantined("a")
			if len(left) != 1 || left[0].Rows != 3 || left[0].Segments != 3 || !left[0].Judged || left[0].Salvaged {
				t.Fatalf("in quarantine: %+v", left)
			}
			if files, _ := filepath.Glob(filepath.Join(left[0].Dir, "*.seg")); len(files) != 3 {
				t.Errorf("segments that the chain has are still there: %v", files)
			}
			rows, err := w.cat.AuditRows(t.Context(), 0, 100)
			if err != nil || !strings.Contains(fmt.Sprint(rows), "3 rows in 3 segments") {
				t.Errorf("no record: %+v, %v", rows, err)
			}
			if n := w.salvage(left[0], a); n != 3 {
				t.Errorf("%d rows salvaged", n)
			}
			w.mustClose(a)
			w.checkStored()
			if got := w.stored("s"); fmt.Sprint(got) != "[one two six three four five]" {
				t.Errorf("history %q", got)
			}
			if left = w.quarantined("a"); len(left) != 1 || !left[0].Salvaged {
				t.Errorf("after the salvage: %+v", left)
			}
			if err := RemoveQuarantine(t.Context(), left[0]); err != nil || len(w.quarantined("a")) != 0 {
				t.Errorf("%v, %+v", err, w.quarantined("a"))
			}
		})
	}
}

// identity is the writer UUID of a directory's shard 0.
func (w *world) identity(dir string) segment.UUID {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.root, dir, segment.Chain{Epoch: 1}.String(), segment.IdentityFile))
	if err != nil {
		w.t.Fatal(err)
	}
	id, err := segment.DecodeIdentity(b)
	if err != nil {
		w.t.Fatal(err)
	}
	return id.Writer
}

// TestProofByTerm: slots that were trimmed, and their rows forgotten, are proven by the
// term table; a catalog that cannot say keeps everything.
func TestProofByTerm(t *testing.T) {
	leftsRows(t, 3, func(c Catalog) Catalog { return noSlots{trimmedChain{c}} })

	w := newWorld(t, 1)
	w.leftOverRows(t)
	_, err := w.tryOpen("a", func(o *Options) { o.Catalog = noTerms{o.Catalog} })
	if !errors.Is(err, catalog.ErrUnavailable) {
		t.Errorf("judged without the terms: %v", err)
	}
	left := w.quarantined("a")
	if len(left) != 1 || left[0].Judged || left[0].Rows != 5 {
		t.Errorf("in quarantine: %+v", left)
	}
	if _, err := Salvage(t.Context(), left[0], 1, w.salvager(nil)); !errors.Is(err, ErrUnjudged) {
		t.Errorf("salvaged unjudged: %v", err)
	}
	w.mustClose(w.open("a"))
	if left := w.quarantined("a"); len(left) != 1 || !left[0].Judged || left[0].Rows != 3 {
		t.Errorf("in quarantine: %+v", left)
	}
}

type noSlots struct{ trimmedChain }

func (noSlots) Slots(context.Context, segment.Chain, segment.ID, int) ([]catalog.SlotRow, error) {
	return nil, nil
}

type noTerms struct{ Catalog }

func (noTerms) Terms(context.Context, segment.Chain) ([]catalog.TermRow, error) {
	return nil, fmt.Errorf("%w: injected", catalog.ErrUnavailable)
}

// TestSalvageIsIdempotent: killed after each frame, its answer lost or not, run again and
// again, over two shards: every row once, and in order.
func TestSalvageIsIdempotent(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost=%v", lost), func(t *testing.T) {
			w := newWorld(t, 2)
			streams := []string{streamOf(t, 0, 2), streamOf(t, 1, 2)}
			// Rows of both streams lie in one directory: an epoch with one shard wrote them.
			q := w.handMade(t, streams, 6)
			b := w.open("b")
			for round := 0; ; round++ {
				sends := 0
				_, err := Salvage(t.Context(), q, 2, func(ctx context.Context, p Producer, stream string, rows []segment.Row) error {
					if sends++; sends > round {
						return errPower
					}
					_, err := b.AppendAs(ctx, p, stream, rows, AckShared)
					if sends == round && lost && err == nil {
						return errPower
					}
					return err
				})
				if err == nil {
					break
				}
				if !errors.Is(err, errPower) || round > 100 {
					t.Fatal(err)
				}
				if err := os.Remove(filepath.Join(q.Dir, progressFile)); err != nil && !os.IsNotExist(err) {
					t.Fatal(err) // as if none of it had reached the disk
				}
			}
			w.mustClose(b)
			for _, s := range streams {
				var want []string
				for i := range 6 {
					want = append(want, fmt.Sprintf("%s-%d", s, i))
				}
				if got := w.stored(s); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("stream %s: %q", s, got)
				}
			}
			w.fsck()
		})
	}
}

// handMade quarantines a directory of an epoch with one shard, rows of streams in turn.
func (w *world) handMade(t *testing.T, streams []string, n int) Quarantine {
	t.Helper()
	topo := w.topo
	w.topo.Shards = 1 // the catalog has two chains; shard 0 is one of them
	a := w.open("a", func(o *Options) {
		o.Cut = func(s Step) error {
			if s == StepBuilt {
				return errPower
			}
			return nil
		}
	})
	for i := range n {
		for _, s := range streams {
			if _, err := a.Append(t.Context(), s, []segment.Row{{Payload: fmt.Appendf(nil, "%s-%d", s, i)}}, AckLocal); err != nil {
				t.Fatal(err)
			}
		}
	}
	abandon(t, a)
	x := w.open("x", steal)
	w.mustClose(x)
	w.mustClose(w.open("a"))
	w.topo = topo
	left := w.quarantined("a")
	if len(left) != 1 || left[0].Rows != uint64(n*len(streams)) {
		t.Fatalf("in quarantine: %+v", left)
	}
	return left[0]
}

// TestQuarantineCap: over it the writer serves, and is not ready.
func TestQuarantineCap(t *testing.T) {
	w := newWorld(t, 1)
	w.leftOverRows(t)
	a := w.open("a", func(o *Options) { o.Config.QuarantineMax = 10 })
	err := a.Ready()
	var full *QuarantineError
	if !errors.As(err, &full) || full.Bytes == 0 || !strings.Contains(err.Error(), "strandline salvage") || !strings.Contains(err.Error(), "quarantine rm") {
		t.Errorf("%v", err)
	}
	w.mustAppend(a, "s", AckShared, "seven")
	w.mustClose(a)
	a = w.open("a")
	if err := a.Ready(); err != nil {
		t.Errorf("under the cap: %v", err)
	}
	w.mustClose(a)
}

// TestCutRemove: a removal that was cut is ended by the next start, and not listed.
func TestCutRemove(t *testing.T) {
	w := newWorld(t, 1)
	w.leftOverRows(t)
	w.mustClose(w.open("a"))
	q := w.quarantined("a")[0]
	gone := filepath.Join(filepath.Dir(q.Dir), removedPrefix+filepath.Base(q.Dir))
	if err := os.Rename(q.Dir, gone); err != nil {
		t.Fatal(err)
	}
	if left := w.quarantined("a"); len(left) != 0 {
		t.Errorf("%+v", left)
	}
	w.mustClose(w.open("a"))
	if _, err := os.Stat(gone); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if err := RemoveQuarantine(t.Context(), Quarantine{Dir: w.root}); !errors.Is(err, ErrInvalid) {
		t.Errorf("any directory is removed: %v", err)
	}
}

// TestWrongCatalog: a chain that nobody ever owned is not this directory's.
func TestWrongCatalog(t *testing.T) {
	w := newWorld(t, 1)
	w.unpublished("a", "one")
	v := newWorld(t, 1)
	v.root = w.root
	if _, err := v.tryOpen("a"); !errors.Is(err, ErrLeftover) {
		t.Errorf("%v", err)
	}
	if left := w.quarantined("a"); len(left) != 0 {
		t.Errorf("set aside: %+v", left)
	}
	a := w.open("a", steal)
	w.mustClose(a)
	w.checkStored()
}

// TestSalvageOfACopy: a copy of a quarantined directory, judged for itself, brings in no
// row that the first has brought in.
func TestSalvageOfACopy(t *testing.T) {
	w := newWorld(t, 2)
	streams := []string{streamOf(t, 0, 2), streamOf(t, 1, 2)}
	q := w.handMade(t, streams, 4)
	second := q
	second.Dir = filepath.Join(t.TempDir(), filepath.Base(q.Dir))
	if err := os.CopyFS(second.Dir, os.DirFS(q.Dir)); err != nil {
		t.Fatal(err)
	}
	v, err := readVerdict(wal.OSFS(false), second.Dir)
	if err != nil {
		t.Fatal(err)
	}
	v.ID = uuid.New()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(second.Dir, verdictFile), body, 0o600); err != nil {
		t.Fatal(err)
	}
	b := w.open("b")
	send := func(ctx context.Context, p Producer, stream string, rows []segment.Row) error {
		_, err := b.AppendAs(ctx, p, stream, rows, AckShared)
		return err
	}
	for _, c := range []Quarantine{q, second} {
		if _, err := Salvage(t.Context(), c, 2, send); err != nil {
			t.Fatalf("%s: %v", c.Dir, err)
		}
	}
	w.mustClose(b)
	for _, stream := range streams {
		if got := w.stored(stream); len(got) != 4 {
			t.Errorf("stream %s: %q", stream, got)
		}
	}
	w.fsck()
}
