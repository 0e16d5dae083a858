package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/segment"
)

// history is a stream's: rows 0 to 5 by a term whose disk is lost, of which 4 and 5 were
// not published, and 6 to 8 by the taker.
func history() (*ledger, []row) {
	l := newLedger()
	l.add("s", 1)
	l.ack("s", batch{n: 0, rows: 2, seq: 1, term: 1})
	l.ack("s", batch{n: 2, rows: 1, seq: 5, term: 1, shared: true})
	l.ack("s", batch{n: 3, rows: 1, seq: 6, term: 1})
	l.ack("s", batch{n: 4, rows: 2, seq: 7, term: 1})
	l.losing([]segment.Shard{1})
	l.ack("s", batch{n: 6, rows: 3, seq: 7, term: 2})
	var read []row
	for seq, n := range map[segment.Seq]uint64{1: 0, 2: 1, 5: 2, 6: 3, 7: 6, 8: 7, 9: 8} {
		read = append(read, row{"s", seq, string(rowsSent().Row("s", n))})
	}
	slices.SortFunc(read, func(a, b row) int { return int(a.seq) - int(b.seq) })
	return l, read
}

func TestJudge(t *testing.T) {
	l, read := history()
	if v := l.judge("s", read); len(v.faults) > 0 || v.excused != 2 {
		t.Fatalf("%d rows excused, want 2; %v", v.excused, v.faults)
	}
	drop := func(i int) func([]row) []row { return func(r []row) []row { return slices.Delete(r, i, i+1) } }
	for _, x := range []struct {
		name, want string
		change     func([]row) []row
	}{
		{"local row before a shared one of its term", "loss", drop(0)},
		{"shared row", "loss", drop(2)},
		{"first row of the taker", "loss", drop(4)},
		{"last row", "loss", drop(6)},
		{"again, later", "twice", func(r []row) []row { return append(r, row{"s", 10, r[6].payload}) }},
		{"same seq twice", "shows seq 5 behind 5", func(r []row) []row { return slices.Insert(r, 3, r[2]) }},
		{"swapped", "disorder", func(r []row) []row { r[0].payload, r[1].payload = r[1].payload, r[0].payload; return r }},
		{"moved", "disorder", func(r []row) []row { r[3].seq = 6; r[2].seq = 3; return r }},
		{"one byte", "damage", func(r []row) []row { r[3].payload = r[3].payload[1:]; return r }},
		{"another stream's", "damage", func(r []row) []row { r[3].stream = "t"; return r }},
		{"a lost row elsewhere", "disorder", func(r []row) []row { return append(r, row{"s", 10, string(rowsSent().Row("s", 4))}) }},
	} {
		got := l.judge("s", x.change(slices.Clone(read))).faults
		if !strings.Contains(strings.Join(got, "\n"), x.want) {
			t.Errorf("%s: %q, want %s", x.name, got, x.want)
		}
	}
	// A lost disk takes an end: a row that is there behind one that is missing was not lost with it.
	holed := slices.Delete(slices.Clone(read), 3, 4)
	if got := l.judge("s", holed); len(got.faults) > 0 || got.excused != 3 {
		t.Errorf("an end that is missing: %+v", got)
	}
	if got := l.judge("s", slices.Insert(holed, 3, row{"s", 7, string(rowsSent().Row("s", 4))})[:4]).faults; !strings.Contains(strings.Join(got, "\n"), "seq 6 of the same term is not") {
		t.Errorf("a hole: %q", got)
	}
	delete(l.lost, 1)
	if got := l.judge("s", read).faults; len(got) != 2 {
		t.Errorf("no disk was lost, and 2 rows are missing: %q", got)
	}
}

func TestSame(t *testing.T) {
	_, read := history()
	if got := same("x", "s", read, read); got != nil {
		t.Error(got)
	}
	for i := range read {
		if same("x", "s", slices.Delete(slices.Clone(read), i, i+1), read) == nil {
			t.Errorf("row %d left out", i)
		}
		if same("x", "s", slices.Insert(slices.Clone(read), i, read[i]), read) == nil {
			t.Errorf("row %d twice", i)
		}
	}
}
