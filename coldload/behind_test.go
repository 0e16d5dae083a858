package coldload_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/segment"
)

// givenUp takes objects away and accepts their loss for these streams.
func givenUp(t *testing.T, x *tiertest.Tier, key string, streams ...string) {
	t.Helper()
	if _, err := x.Mem.Delete(t.Context(), []string{key}); err != nil {
		t.Fatal(err)
	}
	for _, s := range streams {
		if _, err := x.Catalog.AcceptLoss(t.Context(), key, s); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadGoesOnBehindALoss: the error of rows that were accepted as lost names the first
// position behind them, over spans that follow one another, and a read from there works.
func TestReadGoesOnBehindALoss(t *testing.T) {
	x := tiertest.New(t, nil)
	var keys []string
	for range 5 {
		keys = append(keys, x.Slot(tiertest.Write{Stream: "a", Rows: 10, Size: 30}, tiertest.Write{Stream: "b", Rows: 3, Size: 30}))
	}
	for _, i := range []int{1, 2, 4} {
		givenUp(t, x, keys[i], "a")
	}
	all := x.Rows["a"]
	cases := map[string]struct {
		from, at, first segment.Seq
		before, behind  []segment.Row
	}{
		"from the start":     {0, all[10].Seq, all[29].Seq + 1, all[:10], all[30:40]},
		"in the first span":  {all[13].Seq, all[13].Seq, all[29].Seq + 1, nil, all[30:40]},
		"in the second span": {all[25].Seq, all[25].Seq, all[29].Seq + 1, nil, all[30:40]},
		"up to the tip":      {all[30].Seq, all[40].Seq, all[49].Seq + 1, all[30:40], nil},
	}
	for name, c := range cases {
		for _, page := range []int{2, 3, 100} {
			t.Run(name, func(t *testing.T) {
				r := reader(t, x, coldload.Config{PlanRefs: page})
				var from segment.Pos
				if c.from != 0 {
					from = at(c.from)
				}
				got, err := collect(t.Context(), r, "a", from, segment.Pos{})
				same(t, got, c.before)
				var re *coldload.ReadError
				if !errors.Is(err, coldload.ErrLost) || !errors.As(err, &re) || re.At != at(c.at) || re.First != at(c.first) {
					t.Fatalf("want a loss at %s that goes on at %s, got %v", at(c.at), at(c.first), err)
				}
				if !strings.Contains(err.Error(), "read from "+re.First.String()+" on") {
					t.Errorf("a person does not learn where to go on: %v", err)
				}
				got, err = collect(t.Context(), r, "a", re.First, segment.Pos{})
				if len(c.behind) == 0 && err == nil && len(got) == 0 {
					return // nothing was appended behind it yet
				}
				if len(got) < len(c.behind) {
					t.Fatalf("%d rows behind the loss: %v", len(got), err)
				}
				same(t, got, c.behind)
			})
		}
	}
	t.Run("a loss that nobody accepted", func(t *testing.T) {
		x.Delete(keys[0])
		var re *coldload.ReadError
		if _, err := collect(t.Context(), reader(t, x, coldload.Config{}), "a", segment.Pos{}, segment.Pos{}); !errors.As(err, &re) || re.Accepted() || re.Key != keys[0] {
			t.Errorf("%v", err)
		}
	})
}

// TestScanGoesOnBehindALoss: the same of a shard scan, whose slots still stand in the chain,
// or are settled and gone; one lost object follows another.
func TestScanGoesOnBehindALoss(t *testing.T) {
	for _, settled := range []bool{false, true} {
		t.Run(fmt.Sprintf("settled %t", settled), func(t *testing.T) {
			x := tiertest.New(t, nil)
			for range 4 {
				if settled {
					x.Settle(1)
				}
				x.Slot(tiertest.Write{Stream: "a", Rows: 10, Size: 30}, tiertest.Write{Stream: "b", Rows: 3, Size: 30}, tiertest.Write{Stream: "a", Rows: 1, Size: 30})
			}
			if settled {
				x.TrimSlots()
			}
			refs, err := x.Catalog.ChainRefs(t.Context(), x.Chain, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			lost := map[string]bool{}
			first, end := segment.Seq(math.MaxUint64), segment.Seq(0)
			for _, r := range refs {
				if s := x.Rows["a"]; r.Last >= s[11].Seq && r.First <= s[32].Seq { // the second and the third
					lost[r.Key] = true
				}
			}
			for key := range lost {
				live, err := x.Catalog.Liveness(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range live {
					first, end = min(first, r.First), max(end, r.Last)
					givenUp(t, x, key, r.Stream)
				}
			}
			r := reader(t, x, coldload.Config{Replans: 2})
			got, err := scanAll(t.Context(), r, x, 0, nil)
			sameScan(t, got, chainRows(x, 0, nil)[:first-1])
			var se *coldload.ScanError
			if !errors.Is(err, coldload.ErrLost) || !errors.As(err, &se) || se.First != end+1 || !strings.Contains(err.Error(), fmt.Sprintf("scan from %d on", end+1)) {
				t.Fatalf("want a loss that goes on at %d, got %v after %d rows", end+1, err, len(got))
			}
			if got, err = scanAll(t.Context(), r, x, se.First, nil); err != nil {
				t.Fatal(err)
			}
			sameScan(t, got, chainRows(x, se.First, nil))
		})
	}
}

// TestScanShowsWhatLiesWithinALoss: the span of a lost ref has rows of other streams in it. A
// scan ends before the first row that is lost, and names the next one that is there: whoever
// goes on where it says is given all of them, and is told of every lost row.
func TestScanShowsWhatLiesWithinALoss(t *testing.T) {
	for _, settled := range []bool{false, true} {
		for _, cfg := range []coldload.Config{{}, {PlanRefs: 2, ScanRefs: 2}} {
			t.Run(fmt.Sprintf("settled %t, refs %d", settled, cfg.ScanRefs), func(t *testing.T) {
				x := tiertest.New(t, nil)
				for range 3 {
					x.Slot(
						tiertest.Write{Stream: "b", Rows: 2, Size: 30},
						tiertest.Write{Stream: "a", Rows: 5, Size: 30}, tiertest.Write{Stream: "b", Rows: 3, Size: 30},
						tiertest.Write{Stream: "a", Rows: 1, Size: 30}, tiertest.Write{Stream: "c", Rows: 1, Size: 30},
						tiertest.Write{Stream: "a", Rows: 2, Size: 30}, tiertest.Write{Stream: "b", Rows: 1, Size: 30})
				}
				if settled {
					x.Settle(1)
					x.TrimSlots()
				}
				loseChunks(t, x, "a")
				lost := map[segment.Seq]bool{}
				for _, row := range x.Rows["a"] {
					lost[row.Seq] = true
				}
				goOn(t, x, reader(t, x, cfg), lost)
			})
		}
	}
}

// loseChunks spoils the bytes of a stream's refs, and accepts their loss.
func loseChunks(t *testing.T, x *tiertest.Tier, stream string) {
	t.Helper()
	refs, err := x.Catalog.ChainRefs(t.Context(), x.Chain, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range refs {
		if refs[i].Stream != stream {
			continue
		}
		spoilChunk(t, x, &refs[i])
		if _, err := x.Catalog.AcceptLoss(t.Context(), refs[i].Key, stream); err != nil {
			t.Fatal(err)
		}
	}
}

// spoilChunk turns the first byte of a ref's bytes.
func spoilChunk(t *testing.T, x *tiertest.Tier, ref *catalog.Ref) {
	t.Helper()
	if !x.Mem.Tamper(ref.Key, func(body []byte) []byte { body[ref.Offset] ^= 0xff; return body }) {
		t.Fatal("no object stands at", ref.Key)
	}
}

// goOn scans from the start, and after each loss from where its error says. Between them the
// scans have to give every row but the lost, and no error may pass a row that is there.
func goOn(t *testing.T, x *tiertest.Tier, r *coldload.Reader, lost map[segment.Seq]bool) {
	t.Helper()
	var got []coldload.ShardRow
	told := map[segment.Seq]bool{}
	from := segment.Seq(0)
	for {
		rows, err := scanAll(t.Context(), r, x, from, nil)
		got = append(got, rows...)
		if err == nil {
			break
		}
		var se *coldload.ScanError
		if !errors.As(err, &se) || !se.Accepted() || se.First <= se.At || se.At < from {
			t.Fatalf("from %d on: %v", from, err)
		}
		if !strings.Contains(err.Error(), fmt.Sprintf("scan from %d on", se.First)) {
			t.Errorf("a person does not learn where to go on: %v", err)
		}
		for seq := se.At; seq < se.First; seq++ {
			if !lost[seq] {
				t.Errorf("row %d is there, and is passed by: %v", seq, err)
			}
			told[seq] = true
		}
		from = se.First
	}
	var want []coldload.ShardRow
	for _, row := range chainRows(x, 0, nil) {
		if !lost[row.Seq] {
			want = append(want, row)
		}
	}
	sameScan(t, got, want)
	if len(told) != len(lost) || len(lost) == 0 {
		t.Errorf("told of %d lost rows, %d are", len(told), len(lost))
	}
}

// TestScanOfASpoiledSlot: a slot stands, and some of its chunks are bad. Of those that an
// operator gave up the scan says so; of any other it is corrupt, and names it.
func TestScanOfASpoiledSlot(t *testing.T) {
	x := tiertest.New(t, nil)
	for range 2 {
		x.Slot(tiertest.Write{Stream: "b", Rows: 2, Size: 30}, tiertest.Write{Stream: "a", Rows: 5, Size: 30}, tiertest.Write{Stream: "c", Rows: 3, Size: 30})
	}
	refs, err := x.Catalog.ChainRefs(t.Context(), x.Chain, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	spoilChunk(t, x, &refs[2]) // c
	r := reader(t, x, coldload.Config{})
	got, err := scanAll(t.Context(), r, x, 0, nil)
	var se *coldload.ScanError
	if !errors.As(err, &se) || !errors.Is(err, coldload.ErrCorrupt) || se.Stream != "c" || len(got) != 0 {
		t.Fatalf("%d rows of a slot with a bad chunk: %v", len(got), err)
	}
	givenUpChunk(t, x, &refs[1]) // a
	got, err = scanAll(t.Context(), r, x, 8, nil)
	if !errors.As(err, &se) || !errors.Is(err, coldload.ErrCorrupt) || se.Stream != "c" || len(got) != 0 {
		t.Errorf("c's rows were given up by nobody: %d rows, %v", len(got), err)
	}
	if _, err := x.Catalog.AcceptLoss(t.Context(), refs[2].Key, "c"); err != nil {
		t.Fatal(err)
	}
	if got, err = scanAll(t.Context(), r, x, 0, nil); !errors.As(err, &se) || !se.Accepted() || se.At != 3 || se.First != 11 {
		t.Errorf("a's and c's rows are lost, b's follow at 11: %v", err)
	}
	sameScan(t, got, chainRows(x, 0, nil)[:2])
	got, err = scanAll(t.Context(), r, x, 11, nil)
	if err != nil {
		t.Error(err)
	}
	sameScan(t, got, chainRows(x, 11, nil))
}

func givenUpChunk(t *testing.T, x *tiertest.Tier, ref *catalog.Ref) {
	t.Helper()
	spoilChunk(t, x, ref)
	if _, err := x.Catalog.AcceptLoss(t.Context(), ref.Key, ref.Stream); err != nil {
		t.Fatal(err)
	}
}

// TestScanOverATrimmedLoss: lost rows that a trim gave up since are missed by nobody.
func TestScanOverATrimmedLoss(t *testing.T) {
	x := tiertest.New(t, nil)
	x.Slot(tiertest.Write{Stream: "b", Rows: 2, Size: 30}, tiertest.Write{Stream: "a", Rows: 5, Size: 30}, tiertest.Write{Stream: "b", Rows: 3, Size: 30})
	x.Settle(1)
	x.TrimSlots()
	loseChunks(t, x, "a")
	if _, err := x.Catalog.TrimStream(t.Context(), "a", at(5)); err != nil {
		t.Fatal(err)
	}
	r := reader(t, x, coldload.Config{})
	var se *coldload.ScanError
	if _, err := scanAll(t.Context(), r, x, 0, nil); !errors.As(err, &se) || se.At != 5 || se.First != 8 {
		t.Fatalf("3 and 4 were trimmed, 5 to 7 are lost: %v", err)
	}
	if _, err := x.Catalog.TrimStream(t.Context(), "a", at(8)); err != nil {
		t.Fatal(err)
	}
	got, err := scanAll(t.Context(), r, x, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	sameScan(t, got, chainRows(x, 0, map[string]segment.Seq{"a": 8}))
}

// TestScanNamesTheFirstLoss: of two lost spans over each other, the one whose first row was
// trimmed begins behind it.
func TestScanNamesTheFirstLoss(t *testing.T) {
	x := tiertest.New(t, nil)
	x.Slot(tiertest.Write{Stream: "a", Rows: 2, Size: 30}, tiertest.Write{Stream: "d", Rows: 1, Size: 30}, tiertest.Write{Stream: "a", Rows: 2, Size: 30}, tiertest.Write{Stream: "b", Rows: 1, Size: 30})
	x.Settle(1)
	x.TrimSlots()
	loseChunks(t, x, "a")
	loseChunks(t, x, "d")
	if _, err := x.Catalog.TrimStream(t.Context(), "a", at(4)); err != nil {
		t.Fatal(err)
	}
	var se *coldload.ScanError
	if _, err := scanAll(t.Context(), reader(t, x, coldload.Config{}), x, 0, nil); !errors.As(err, &se) || se.At != 3 || se.First != 6 || !strings.Contains(se.Detail, `"d"`) {
		t.Errorf("d's row at 3 is lost: %v", err)
	}
}

// TestScanTurnsToRefsOnAWordOnly: the refs of a slot whose footer is bad would serve it, but it is
// damage all the same, until an operator gave up rows of it; wherever in it they lie.
func TestScanTurnsToRefsOnAWordOnly(t *testing.T) {
	x := tiertest.New(t, nil)
	var ws []tiertest.Write
	for i := range 9 {
		ws = append(ws, tiertest.Write{Stream: fmt.Sprint("s", i), Rows: 2, Size: 30})
	}
	key := x.Slot(ws...)
	if !x.Mem.Tamper(key, func(body []byte) []byte { body[len(body)-40] ^= 0xff; return body }) {
		t.Fatal("no slot")
	}
	r := reader(t, x, coldload.Config{PlanRefs: 2, ScanRefs: 2})
	if got, err := scanAll(t.Context(), r, x, 0, nil); !errors.Is(err, coldload.ErrCorrupt) || len(got) != 0 {
		t.Fatalf("%d rows of a slot with a bad footer: %v", len(got), err)
	}
	if _, err := x.Catalog.AcceptLoss(t.Context(), key, "s8"); err != nil {
		t.Fatal(err)
	}
	got, err := scanAll(t.Context(), r, x, 0, nil)
	var se *coldload.ScanError
	if !errors.As(err, &se) || !se.Accepted() || se.At != 17 || se.First != 19 {
		t.Errorf("s8's rows, 17 and 18, were given up: %v", err)
	}
	sameScan(t, got, chainRows(x, 0, nil)[:16])
}

// blink keeps a stream's refs from one pass of a scan, as a rewrite between its pages does.
type blink struct {
	coldload.Catalog
	stream string
	passes int
}

func (b *blink) ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) ([]catalog.Ref, error) {
	refs, err := b.Catalog.ChainRefs(ctx, c, from, limit)
	if b.passes--; b.passes >= 0 {
		refs = slices.DeleteFunc(refs, func(r catalog.Ref) bool { return r.Stream == b.stream })
	}
	return refs, err
}

// TestScanLooksTwiceAtALoss: rows within a lost span that one look at the refs did not find are
// not called lost before a second look, and lost ones that it did not find not trimmed.
func TestScanLooksTwiceAtALoss(t *testing.T) {
	for _, missed := range []string{"a", "b"} {
		t.Run(missed, func(t *testing.T) {
			x := tiertest.New(t, nil)
			x.Slot(tiertest.Write{Stream: "a", Rows: 5, Size: 30}, tiertest.Write{Stream: "b", Rows: 3, Size: 30}, tiertest.Write{Stream: "a", Rows: 2, Size: 30})
			x.Settle(1)
			x.TrimSlots()
			loseChunks(t, x, "a")
			b := &blink{Catalog: x.Catalog, stream: missed, passes: 1}
			r, err := coldload.New(b, x.Classes, coldload.Config{Clock: x.Clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			var se *coldload.ScanError
			if _, err := scanAll(t.Context(), r, x, 0, nil); !errors.As(err, &se) || !se.Accepted() || se.At != 1 || se.First != 6 || b.passes >= 0 {
				t.Errorf("a's rows from 1 on are lost, b's from 6 on are there: %v", err)
			}
		})
	}
}

// TestScanNamesTheFirstOfTwoRuns: between two lost runs lies a row that is not shown. Nobody is
// told of the second run alone.
func TestScanNamesTheFirstOfTwoRuns(t *testing.T) {
	x := tiertest.New(t, nil)
	x.Slot(tiertest.Write{Stream: "a", Rows: 2, Size: 30}, tiertest.Write{Stream: "b", Rows: 1, Size: 30},
		tiertest.Write{Stream: "a", Rows: 2, Size: 30}, tiertest.Write{Stream: "c", Rows: 1, Size: 30}, tiertest.Write{Stream: "b", Rows: 1, Size: 30})
	x.Settle(1)
	x.TrimSlots()
	loseChunks(t, x, "a")
	if _, err := x.Catalog.TrimStream(t.Context(), "b", at(4)); err != nil {
		t.Fatal(err)
	}
	var se *coldload.ScanError
	if _, err := scanAll(t.Context(), reader(t, x, coldload.Config{}), x, 0, nil); !errors.As(err, &se) || se.At != 1 || se.First != 6 {
		t.Errorf("1, 2, 4 and 5 are lost, 3 was trimmed, 6 is there: %v", err)
	}
}

// TestScanTellsOfEachLoss: of lost spans that lie apart, each is told of in its turn.
func TestScanTellsOfEachLoss(t *testing.T) {
	x := tiertest.New(t, nil)
	for _, stream := range []string{"a", "c", "d", "c", "e", "c"} {
		x.Slot(tiertest.Write{Stream: stream, Rows: 2, Size: 30})
	}
	x.Settle(1)
	x.TrimSlots()
	lost := map[segment.Seq]bool{}
	for _, stream := range []string{"a", "d", "e"} {
		loseChunks(t, x, stream)
		for _, row := range x.Rows[stream] {
			lost[row.Seq] = true
		}
	}
	goOn(t, x, reader(t, x, coldload.Config{}), lost)
}
