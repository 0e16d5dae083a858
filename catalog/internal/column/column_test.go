package column

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func TestTimes(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(0, 1).UTC(), time.Date(2199, 12, 31, 23, 59, 59, 999_999_999, time.UTC)} {
		if got := At(Nanos(at)); !got.Equal(at) || got.Location() != time.UTC {
			t.Errorf("%v came back as %v", at, got)
		}
	}
}

// row gives a scan the values of a ref's columns: integers, then what the texts are.
func row(ints map[int]int64, kind string) Scan {
	return func(dest ...any) error {
		n := 0
		for i, d := range dest {
			switch d := d.(type) {
			case *int64:
				*d = ints[n]
				n++
			case *string:
				*d = "s"
				if i == 9 {
					*d = kind
				}
			}
		}
		return nil
	}
}

// TestRef: the columns go where they belong, and a ref that names a row that does not
// stand is corruption.
func TestRef(t *testing.T) {
	const liveEpoch, liveSeq, watermark = 21, 22, 23 // numbers of the columns that are integers
	cols := map[int]int64{}
	for i := range 21 {
		cols[i] = int64(i + 1)
	}
	cols[liveEpoch], cols[liveSeq], cols[watermark] = 2, 3, 9
	var name string
	l, err := Ref(row(cols, "pack"), &name)
	if err != nil || name != "s" {
		t.Fatalf("name %q: %v", name, err)
	}
	want := catalog.Ref{
		StreamID: 1, Chain: segment.Chain{Epoch: 2, Shard: 3}, First: 4, Last: 5, PrevLast: segment.Pos{Epoch: 6, Seq: 7},
		Key: "s", Kind: "pack", Class: "s", Revision: 8, Generation: 9, Chunks: 10, Offset: 11, Stored: 12, Raw: 13,
		Codec: 14, CRC: 15, Sum: 16, Rows: 17, RowSum: 18, Bytes: 19, MinTime: 20, MaxTime: 21,
	}
	if l.Ref != want || l.LiveFrom != (segment.Pos{Epoch: 2, Seq: 10}) {
		t.Errorf("read %+v", l)
	}
	for missing, at := range map[string]int{"stream": liveEpoch, "chain": watermark} {
		stood := cols[at]
		cols[at] = -1
		if _, err := Ref(row(cols, "pack"), &name); !errors.Is(err, catalog.ErrCorrupt) {
			t.Errorf("no %s: %v", missing, err)
		}
		cols[at] = stood
	}
	if _, err := Ref(row(cols, ""), &name); !errors.Is(err, catalog.ErrCorrupt) {
		t.Errorf("no object: %v", err)
	}
}

// TestReach: the bound of a class holds its longest ref, and does not overflow.
func TestReach(t *testing.T) {
	for _, c := range []struct {
		at     segment.Seq
		digits int
		want   int64
	}{
		{10, 3, 10 + 4096},
		{10, 4, 10 + 65536},
		{math.MaxInt64 - 4096, 3, math.MaxInt64},
		{math.MaxInt64 - 4095, 3, math.MaxInt64},
		{math.MaxUint64, 3, math.MaxInt64},
		{1, MaxDigits, math.MaxInt64},
	} {
		if got := (Cut{At: c.at}).Reach(c.digits); got != c.want {
			t.Errorf("%d digits behind %d reach %d, want %d", c.digits, c.at, got, c.want)
		}
	}
}
