package localtier

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// TestRefusals: what is refused writes nothing and takes no seq.
func TestRefusals(t *testing.T) {
	w := newWorld(t, 2)
	a := w.open("a", func(o *Options) { o.Shards = []segment.Shard{1} })
	mine, theirs := streamOf(t, 1, 2), streamOf(t, 0, 2)
	big := make([]byte, segment.MaxFrameBytes)
	for name, c := range map[string]struct {
		stream string
		rows   []segment.Row
		ack    Ack
		is     error
	}{
		"no name":     {"", []segment.Row{{}}, AckLocal, segment.ErrName},
		"long name":   {strings.Repeat("n", 201), []segment.Row{{}}, AckLocal, segment.ErrName},
		"reserved":    {"~audit/1", []segment.Row{{}}, AckLocal, segment.ErrName},
		"not UTF-8":   {"\xff", []segment.Row{{}}, AckLocal, segment.ErrName},
		"other shard": {theirs, []segment.Row{{}}, AckLocal, ErrNotOwner},
		"no rows":     {mine, nil, AckLocal, ErrInvalid},
		"large row":   {mine, []segment.Row{{Payload: big}}, AckLocal, ErrTooLarge},
		"bad ack":     {mine, []segment.Row{{}}, "quorum", ErrInvalid},
	} {
		if res, err := a.Append(t.Context(), c.stream, c.rows, c.ack); !errors.Is(err, c.is) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	if next := a.Status()[0].NextSeq; next != 1 {
		t.Errorf("refusals took seqs up to %d", next)
	}
	w.mustAppend(a, mine, AckShared, "one")
	w.mustClose(a)
	if _, err := a.Append(t.Context(), mine, []segment.Row{{}}, AckLocal); !errors.Is(err, ErrClosed) {
		t.Errorf("after close: %v", err)
	}
	w.checkStored()
}

// TestNotOwnerNamesTheOwner: a misrouted append is told where to go.
func TestNotOwnerNamesTheOwner(t *testing.T) {
	w := newWorld(t, 2)
	a := w.open("a", func(o *Options) { o.Shards = []segment.Shard{0} })
	b := w.open("b", func(o *Options) { o.Shards = []segment.Shard{1} })
	_, err := a.Append(t.Context(), streamOf(t, 1, 2), []segment.Row{{}}, AckLocal)
	var not *NotOwnerError
	if !errors.As(err, &not) || not.Shard != 1 || not.Owner != "b:8420" {
		t.Errorf("%v", err)
	}
	w.mustClose(a)
	w.mustClose(b)
}

// unseen is a catalog that does not answer for chains, on demand.
type unseen struct {
	Catalog
	away atomic.Bool
}

func (c *unseen) Chain(ctx context.Context, ch segment.Chain) (catalog.ChainRow, error) {
	if c.away.Load() {
		return catalog.ChainRow{}, catalog.ErrUnavailable
	}
	return c.Catalog.Chain(ctx, ch)
}

// TestNobodyOwnsIt: who appends to a shard that no process took is told that, and what to do;
// of a catalog that does not answer it is not known.
func TestNobodyOwnsIt(t *testing.T) {
	w := newWorld(t, 2)
	cat := &unseen{}
	a := w.open("a", func(o *Options) {
		cat.Catalog, o.Catalog, o.Shards = o.Catalog, cat, []segment.Shard{0}
	})
	stream := streamOf(t, 1, 2)
	var not *NotOwnerError
	for _, ask := range []func() error{
		func() error { _, err := a.Append(t.Context(), stream, []segment.Row{{}}, AckLocal); return err },
		func() error { _, err := a.Consumers(t.Context(), 1); return err },
	} {
		if err := ask(); !errors.As(err, &not) || !not.Nobody || !strings.Contains(err.Error(), "shard 1") || !strings.Contains(err.Error(), "strandline writer --shards 1") {
			t.Errorf("nobody took it: %v", err)
		}
		cat.away.Store(true)
		if err := ask(); !errors.As(err, &not) || not.Nobody || !strings.Contains(err.Error(), "its owner is unknown") {
			t.Errorf("nobody knows: %v", err)
		}
		cat.away.Store(false)
	}
	w.mustClose(a)
}

// TestSplitOverTheFrameCap: an append larger than a frame keeps its rows together,
// each whole.
func TestSplitOverTheFrameCap(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	rows := make([]segment.Row, 5)
	for i := range rows {
		rows[i].Payload = noise(7<<20 + i)
	}
	res, err := a.Append(t.Context(), "s", rows, AckShared)
	if err != nil || res.Last-res.First != 4 {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, r := range rows {
		w.acked["s"] = append(w.acked["s"], string(r.Payload))
	}
	w.mustClose(a)
	w.checkStored()
}

func TestCutFrames(t *testing.T) {
	room := segment.MaxFrameBytes - headBytes - 30
	for _, c := range []struct {
		sizes []int
		want  []int
	}{
		{[]int{0}, []int{1}},
		{[]int{room}, []int{1}},
		{[]int{room, 0}, []int{1, 1}},
		{[]int{room / 2, room/2 - 30, 0, room}, []int{2, 1, 1}},
		{[]int{room / 2, room/2 - 60, 0, room}, []int{3, 1}},
	} {
		rows := make([]segment.Row, len(c.sizes))
		for i, n := range c.sizes {
			rows[i] = segment.Row{Time: math.MinInt64 * int64(i%2), Payload: make([]byte, n)}
		}
		frames, size, err := cutFrames(nil, "s", rows)
		if err != nil || len(frames) != len(c.want) {
			t.Errorf("%v: %d frames, %v", c.sizes, len(frames), err)
			continue
		}
		var exact int64
		for i, f := range frames {
			if len(f) != c.want[i] {
				t.Errorf("%v: frame %d has %d rows, %d wanted", c.sizes, i, len(f), c.want[i])
			}
			b := segment.Batch{Stream: strings.Repeat("s", 200), First: math.MaxInt64, Rows: f}
			if n := segment.BatchBytes(&b); n > segment.MaxFrameBytes {
				t.Errorf("%v: frame %d of %d bytes", c.sizes, i, n)
			} else {
				exact += int64(n) + segment.FrameHeaderBytes
			}
		}
		if size < exact {
			t.Errorf("%v: %d bytes foreseen, %d taken", c.sizes, size, exact)
		}
	}
	if _, _, err := cutFrames(nil, "s", []segment.Row{{Payload: make([]byte, room+1)}}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

// TestBackpressure: a catalog that is away lets segments queue, up to the cap.
func TestBackpressure(t *testing.T) {
	w := newWorld(t, 1)
	c := &awayCatalog{Catalog: w.cat}
	a := w.open("a", func(o *Options) {
		o.Catalog = c
		o.Config.WAL.SegmentBytes = segment.MinSegmentBytes
		o.Config.MaxUnpublished = 2 * segment.MinSegmentBytes
	})
	c.away.Store(true)
	row := string(noise(4 << 20))
	var err error
	for n := 0; err == nil; n++ {
		if n > 9 {
			t.Fatal("no end of it")
		}
		err = w.append(a, "s", AckLocal, row)
	}
	var full *BackpressureError
	if !errors.As(err, &full) || full.RetryAfter <= 0 || !strings.Contains(err.Error(), "published") {
		t.Errorf("%v", err)
	}
	if st := a.Status()[0]; st.UnpublishedBytes == 0 || st.State != StateServing {
		t.Errorf("%+v", st)
	}
	c.away.Store(false)
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.mustAppend(a, "s", AckLocal, "again")
	w.mustClose(a)
	w.checkStored()
}

// TestFullDisk: an append is refused while the disk is nearly full.
func TestFullDisk(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a", func(o *Options) { o.Config.MinFreeDisk = math.MaxInt64 })
	if err := w.append(a, "s", AckLocal, "one"); !errors.Is(err, ErrBackpressure) {
		t.Errorf("%v", err)
	}
	w.mustClose(a)
}

func TestConfigValidate(t *testing.T) {
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
	err := Config{Ack: "never", LeaseTime: time.Millisecond, MaxUnpublished: 1, Housekeeping: 1, MaxStreams: -1, SharedWindow: time.Hour, Backoff: time.Hour}.Validate()
	for _, word := range []string{"ack", "lease", "unpublished", "housekeeping", "streams", "shared window", "backoff"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not told of: %v", word, err)
		}
	}
}

func TestBadOptions(t *testing.T) {
	w := newWorld(t, 2)
	for name, change := range map[string]func(*Options){
		"no directory":  func(o *Options) { o.Dir = "" },
		"no shard":      func(o *Options) { o.Shards = []segment.Shard{} },
		"shard too far": func(o *Options) { o.Shards = []segment.Shard{2} },
		"closed epoch":  func(o *Options) { o.Topology.State = "closed" },
		"no catalog":    func(o *Options) { o.Catalog = nil },
	} {
		if _, err := w.tryOpen("a", change); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// streamOf finds a name that belongs to a shard.
func streamOf(t *testing.T, shard segment.Shard, of uint32) string {
	t.Helper()
	for _, n := range names("stream", 1000) {
		if segment.ShardOf(n, of) == shard {
			return n
		}
	}
	t.Fatal("no such name")
	return ""
}
