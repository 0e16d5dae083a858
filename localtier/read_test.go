package localtier

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/strandline/strandline/segment"
)

func readLocal(t *testing.T, wr *Writer, stream string, from, to segment.Seq) (out []string, err error) {
	t.Helper()
	for row, err := range wr.Read(t.Context(), stream, from, to) {
		if err != nil {
			return out, err
		}
		out = append(out, string(row.Payload))
	}
	return out, nil
}

// TestReadLocal: rows are readable once acknowledged, across segments and starts.
func TestReadLocal(t *testing.T) {
	w := newWorld(t, 1)
	cut, _ := cutOnce(StepBuilt, 1) // nothing is published
	a := w.open("a", func(o *Options) { o.Cut = cut })
	w.mustAppend(a, "x", AckLocal, "1", "2")
	w.mustAppend(a, "y", AckLocal, "3")
	mustSeal(t, a.shards[0])
	w.mustAppend(a, "x", AckLocal, "4")
	check := func(wr *Writer) {
		t.Helper()
		for _, c := range []struct {
			stream   string
			from, to segment.Seq
			want     string
		}{
			{"x", 1, 0, "[1 2 4]"},
			{"x", 2, 0, "[2 4]"},
			{"x", 2, 3, "[2]"},
			{"x", 3, 4, "[4]"},
			{"x", 5, 0, "[]"},
			{"y", 1, 9, "[3]"},
			{"z", 1, 0, "[]"},
		} {
			if got, err := readLocal(t, wr, c.stream, c.from, c.to); err != nil || fmt.Sprint(got) != c.want {
				t.Errorf("%s from %d to %d: %v, %v; want %s", c.stream, c.from, c.to, got, err, c.want)
			}
		}
		if first, next, err := wr.Local(t.Context(), "x"); err != nil || first != 1 || next != 5 {
			t.Errorf("local from %d to before %d, %v", first, next, err)
		}
	}
	check(a)
	abandon(t, a)
	cut, _ = cutOnce(StepBuilt, 1)
	a = w.open("a", func(o *Options) { o.Cut = cut })
	check(a)
	abandon(t, a)
	w.mustClose(w.open("a"))
	w.checkStored()
}

// TestReadBelowLocal: what housekeeping dropped is the bucket's to serve.
func TestReadBelowLocal(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	s := a.shards[0]
	w.mustAppend(a, "x", AckShared, "1", "2", "3")
	s.housekeep(t.Context())
	_, err := readLocal(t, a, "x", 1, 0)
	var not *NotLocalError
	if !errors.As(err, &not) || not.First < 2 {
		t.Fatalf("%v", err)
	}
	got, err := readLocal(t, a, "x", not.First, 0)
	if want := w.acked["x"][not.First-1:]; err != nil || !slices.Equal(got, want) {
		t.Errorf("from %d: %q, %v; want %q", not.First, got, err, want)
	}
	w.mustClose(a)
}

// TestReadWhileAppending: a reader never sees a hole, however appends end.
func TestReadWhileAppending(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 30 {
				rows := []segment.Row{{Payload: fmt.Appendf(nil, "%d/%d", g, i)}}
				if _, err := a.Append(t.Context(), "s", rows, AckLocal); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		next := segment.Seq(1)
		for row, err := range a.Read(t.Context(), "s", 1, 0) {
			if err != nil || row.Seq != next {
				t.Fatalf("seq %d after %d: %v", row.Seq, next-1, err)
			}
			next++
		}
		if ended && next != 121 {
			t.Errorf("%d rows are readable, 120 were acknowledged", next-1)
		}
	}
	w.mustClose(a)
}

// TestManyStreamsSeal: a segment with very many streams is sealed for that.
func TestManyStreamsSeal(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a", func(o *Options) { o.Config.MaxStreams = 5 })
	s := a.shards[0]
	for i := range 12 {
		w.mustAppend(a, fmt.Sprint("s", i), AckLocal, "row")
	}
	eventually(t, s, "a slot of few streams is absorbed", func() bool { return s.chainRow().AbsorbedEnd >= 2 })
	w.mustClose(a)
	w.checkStored()
}

// TestReadOnly beside a live owner: durable rows, no writes, nothing changed.
func TestReadOnly(t *testing.T) {
	w := newWorld(t, 1)
	cut, _ := cutOnce(StepBuilt, 1)
	a := w.open("a", func(o *Options) { o.Cut = cut })
	w.mustAppend(a, "x", AckLocal, "1", "2")
	mustSeal(t, a.shards[0])
	w.mustAppend(a, "x", AckLocal, "3")
	ro, err := OpenReadOnly(t.Context(), a.shards[0].dir)
	if err != nil {
		t.Fatal(err)
	}
	if ro.Owner() != a.shards[0].owner || ro.State().Next != 4 {
		t.Errorf("owner %s, next %d", ro.Owner(), ro.State().Next)
	}
	var got []string
	for row, err := range ro.Read(t.Context(), "x", 2, 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(row.Payload))
	}
	if fmt.Sprint(got) != "[2 3]" {
		t.Errorf("%q", got)
	}
	if _, err := ro.Append(t.Context(), "x", []segment.Row{{}}, AckLocal); !errors.Is(err, ErrReadOnly) {
		t.Errorf("%v", err)
	}
	w.mustAppend(a, "x", AckLocal, "4")
	abandon(t, a)
	w.mustClose(w.open("a"))
	w.checkStored()
}
