package localtier

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/segment"
)

// chainOf publishes n slots of shard 0 and gives what the owner's files held.
func (w *world) chainOf(t *testing.T, n int, change ...func(*Options)) map[string]string {
	t.Helper()
	a := w.open("a", change...)
	if _, err := a.CreateConsumer(t.Context(), 0, "slow", 0); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		w.mustAppend(a, "s", AckLocal, fmt.Sprint(i))
		w.mustAppend(a, fmt.Sprintf("t%d", i), AckLocal, "x")
		if err := a.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.mustClose(a)
	return w.segmentFiles(t, "a")
}

// segmentFiles is the sealed segments of a directory, by name.
func (w *world) segmentFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	names, err := filepath.Glob(filepath.Join(w.root, dir, segment.Chain{Epoch: 1}.String(), "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(name)] = string(b)
	}
	return out
}

func (w *world) hydrated(t *testing.T, wr *Writer, want int) {
	t.Helper()
	s := wr.shards[0]
	s.hydrating.Wait()
	if st := wr.Status()[0]; st.Hydrated != want || st.HydrateTotal != want {
		t.Errorf("%d of %d hydrated, want %d; %s", st.Hydrated, st.HydrateTotal, want, st.LastError)
	}
}

// TestHydrate: a new owner on an empty disk has the files of the owner before, byte for
// byte, and the slow consumer reads on from them.
func TestHydrate(t *testing.T) {
	w := newWorld(t, 1)
	old := w.chainOf(t, 5)
	b := w.open("b")
	w.hydrated(t, b, 5)
	now := w.segmentFiles(t, "b")
	for name, body := range old {
		if now[name] != body {
			t.Errorf("%s is not the owner's file", name)
		}
	}
	rows, err := b.Pull(t.Context(), 0, "slow", 100)
	if err != nil || len(rows) != 10 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	w.mustAppend(b, "s", AckShared, "more")
	w.mustClose(b)
	// The next start reads on from what is here, and fetches nothing.
	before := w.set.First().Counters()
	b = w.open("b")
	w.hydrated(t, b, 0)
	if got, err := readLocal(t, b, "s", 1, 0); err != nil || len(got) != 6 {
		t.Errorf("%q, %v", got, err)
	}
	if gets := w.set.First().Counters().Sub(before).Requests[objstore.OpGet]; gets > 2 {
		t.Errorf("%d GETs at a restart", gets)
	}
	w.mustClose(b)
	w.checkStored()
}

// TestHydrateOnlyWhatIsWanted: without a consumer nothing, with HydrateAll everything;
// a void slot in between is passed, and ids are the files' own.
func TestHydrateOnlyWhatIsWanted(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	w.mustAppend(a, "s", AckShared, "0")
	w.put(segment.SlotKey(a.shards[0].chain, w.chain(0).AbsorbedEnd), []byte("garbage"), nil)
	w.mustAppend(a, "s", AckShared, "1")
	w.mustAppend(a, "s", AckShared, "2")
	w.mustClose(a)
	b := w.open("b")
	w.hydrated(t, b, 0)
	w.mustClose(b)
	c := w.open("c", func(o *Options) { o.Config.HydrateAll = true })
	w.hydrated(t, c, 3)
	if got, err := readLocal(t, c, "s", 1, 0); err != nil || fmt.Sprint(got) != "[0 1 2]" {
		t.Errorf("%q, %v", got, err)
	}
	c.shards[0].housekeep(t.Context())
	if got, err := readLocal(t, c, "s", 1, 0); err != nil || len(got) != 3 {
		t.Errorf("housekeeping took what is wanted: %q, %v", got, err)
	}
	w.mustClose(c)
	w.checkStored()
}

// TestK26 a crash in the middle of a hydrate leaves no directory that looks whole and
// is not; the next start goes on. And a returning owner's stale directory is not trusted.
func TestK26(t *testing.T) {
	for _, step := range []Step{StepFetched, StepHydrated} {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprintf("%s/%d", step, n), func(t *testing.T) {
				w := newWorld(t, 1)
				old := w.chainOf(t, 4)
				cut := cutLocked(step, n)
				b := w.open("b", func(o *Options) { o.Cut = cut })
				b.shards[0].hydrating.Wait()
				w.mustAppend(b, "s", AckLocal, "served meanwhile")
				w.crash(b, "b", "c")
				for name, body := range w.segmentFiles(t, "c") {
					if want, ok := old[name]; ok && want != body {
						t.Errorf("%s stands here, and is not the owner's file", name)
					}
				}
				c := w.open("c")
				c.shards[0].hydrating.Wait()
				if got, err := readLocal(t, c, "s", 1, 0); err != nil || len(got) != 5 {
					t.Errorf("%q, %v", got, err)
				}
				w.mustClose(c)
				w.checkStored()
				// The first owner comes back with its old directory: the chain has all of it.
				a := w.open("a")
				if left := w.quarantined("a"); len(left) != 0 || a.Status()[0].NextSeq != w.chain(0).NextSeq {
					t.Errorf("%+v", left)
				}
				w.mustAppend(a, "s", AckShared, "back")
				w.mustClose(a)
				w.checkStored()
			})
		}
	}
}

// TestHydrateMeetsTrim: a slot that is gone was trimmed, with all before it.
func TestHydrateMeetsTrim(t *testing.T) {
	w := newWorld(t, 1)
	w.chainOf(t, 5)
	gone := segment.SlotKey(segment.Chain{Epoch: 1}, 2)
	w.set = objstore.Set{newStore(t, faultstore.Wrap(w.mem, func(c faultstore.Call) faultstore.Fault {
		if c.Key == gone && c.Op == objstore.OpGet {
			return faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrNotFound}
		}
		return faultstore.Fault{}
	}))}
	b := w.open("b")
	b.shards[0].hydrating.Wait()
	if st := b.Status()[0]; st.Hydrated < 3 || st.Hydrated != st.HydrateTotal || st.LastError != "" {
		t.Errorf("%+v", st)
	}
	_, err := b.Pull(t.Context(), 0, "slow", 100)
	var away *NotLocalError
	if !errors.As(err, &away) || away.First != 5 {
		t.Errorf("rows behind the gap are served: %v", err)
	}
	w.mustClose(b)
}

// TestHydrateOnAFullDisk: serving goes on, and hydration does once there is room.
func TestHydrateOnAFullDisk(t *testing.T) {
	w := newWorld(t, 1)
	w.chainOf(t, 3)
	disk := &fullForAdopted{FS: osFS()}
	disk.full.Store(true)
	b := w.open("b", func(o *Options) { o.Config.WAL.FS = disk })
	s := b.shards[0]
	eventually(t, s, "the disk is full", func() bool { return strings.Contains(s.status().LastError, "full") })
	w.mustAppend(b, "s", AckLocal, "served")
	disk.full.Store(false)
	w.hydrated(t, b, 3)
	w.mustClose(b)
	w.checkStored()
}

// fullForAdopted has no room for files that come back from the bucket.
type fullForAdopted struct {
	wal.FS
	full atomic.Bool
}

func (d *fullForAdopted) Create(name string) (wal.File, error) {
	if d.full.Load() && strings.HasSuffix(name, ".seg.tmp") {
		return nil, &os.PathError{Op: "create", Path: name, Err: syscall.ENOSPC}
	}
	return d.FS.Create(name)
}

// cutLocked is cutOnce for steps that several goroutines come by.
func cutLocked(step Step, n int) func(Step) error {
	var mu sync.Mutex
	cut, _ := cutOnce(step, n)
	return func(s Step) error {
		mu.Lock()
		defer mu.Unlock()
		return cut(s)
	}
}
