package coldload_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

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
