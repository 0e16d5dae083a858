//go:build unix

package soak

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/segment"
)

// bench is a ledger with one batch of each sort on shard 0, and what it complained of.
type bench struct {
	*ledger
	stream string
	said   []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{stream: nameOn(0, "small")}
	b.ledger = newLedger([]string{b.stream}, func(format string, args ...any) { b.said = append(b.said, fmt.Sprintf(format, args...)) })
	b.sending(b.stream, 30)
	b.ack(receipt{stream: b.stream, n: 0, rows: 10, first: 100, term: 1})                // local, and absorbed:
	b.ack(receipt{stream: b.stream, n: 10, rows: 10, first: 110, term: 1, shared: true}) // since this one is
	b.ack(receipt{stream: b.stream, n: 20, rows: 10, first: 120, term: 1})               // local, and perhaps on a disk only
	b.quiet(t)
	return b
}

func (b *bench) quiet(t *testing.T) {
	t.Helper()
	if len(b.said) > 0 {
		t.Fatalf("complains of nothing: %v", b.said)
	}
}

func (b *bench) complains(t *testing.T, want string) {
	t.Helper()
	if !strings.Contains(strings.Join(b.said, "\n"), want) {
		t.Errorf("want %q, got %v", want, b.said)
	}
	b.said = nil
}

func (b *bench) sightings(from, to uint64) (out []sighting) {
	for n := from; n < to; n++ {
		out = append(out, sighting{segment.Seq(100 + n), n})
	}
	return out
}

func TestLedgerSaw(t *testing.T) {
	b := newBench(t)
	text := func(n uint64) string { return string(rowsSent().Row(b.stream, n)) }
	b.saw("t", b.stream, 105, text(5))
	b.quiet(t)
	b.saw("t", b.stream, 106, text(5))
	b.complains(t, "disorder: t read row 5")
	b.saw("t", b.stream, 105, text(5)+"x")
	b.complains(t, "damage: ")
	b.saw("t", b.stream, 105, strings.Replace(text(5), text(5)[len(text(5))-1:], "!", 1))
	b.complains(t, "damage: ")
	b.saw("t", b.stream, 200, text(30))
	b.complains(t, "before it was sent")
	b.saw("t", "nobody's", 1, "x")
	b.complains(t, "leak: ")
	b.salvaging(0, 150)
	b.saw("t", b.stream, 151, text(5))
	b.quiet(t)
}

func TestLedgerDemand(t *testing.T) {
	b := newBench(t)
	met := func(from segment.Seq, seen []sighting) { b.demands(b.stream, from).met("t", seen, 0) }
	met(0, b.sightings(0, 20)) // what is local only may be missing
	met(110, b.sightings(10, 20))
	b.quiet(t)
	met(0, b.sightings(0, 19))
	b.complains(t, "I7, loss: t of")
	met(0, b.sightings(1, 20))
	b.complains(t, "I7, loss: t of")
	met(0, append(b.sightings(0, 7), b.sightings(8, 20)...))
	b.complains(t, "I7, loss: t of")
	b.asks(b.stream, 108)
	met(0, b.sightings(8, 20))
	b.quiet(t)
	b.gave(b.stream, 108)
	b.gave(b.stream, 107)
	b.complains(t, "I6: live_from")
	b.asks(b.stream, 110)
	b.gave(b.stream, 111)
	b.complains(t, "nobody asked for more")
}

func TestLedgerOrder(t *testing.T) {
	b := newBench(t)
	b.ack(receipt{stream: b.stream, n: 30, rows: 1, first: 125, term: 1})
	b.complains(t, "disorder: ")
	b = newBench(t)
	b.ack(receipt{stream: b.stream, n: 30, rows: 1, first: 121, term: 2}) // a taker, after rows that were local
	b.quiet(t)
	b.asks(b.stream, 150)
	b.gave(b.stream, 150)
	b.ack(receipt{stream: b.stream, n: 31, rows: 1, first: 122, term: 2, begun: time.Now().Add(time.Hour)})
	b.complains(t, "below live_from")
}

func TestLedgerExcuses(t *testing.T) {
	b := newBench(t)
	s := b.streams[b.stream]
	if b.excusable(0, &s.acked[29]) {
		t.Error("nothing happened, and a row is excused")
	}
	b.losing(0, loss{term: 1, next: 120})
	for n, want := range map[uint64]bool{5: false, 15: false, 25: true} {
		if got := b.excusable(0, s.entryOf(n)); got != want {
			t.Errorf("row %d is excused: %v", n, got)
		}
	}
	s.acked[29].shared = true
	if b.excusable(0, &s.acked[29]) {
		t.Error("a shared row is excused")
	}
	s.acked[28].term = 2
	if b.excusable(0, &s.acked[28]) {
		t.Error("a row of the taker is excused")
	}
}

func TestLedgerConsumers(t *testing.T) {
	b := newBench(t)
	fast, slow := &consumerLog{}, &consumerLog{}
	b.consumers["0/fast"], b.consumers["0/slow"], b.consumers["0/unheard"] = fast, slow, &consumerLog{}
	b.acking(fast, 120)
	if b.slowest[0] != 0 {
		t.Errorf("no consumer is absorbed, and rows up to %d may go", b.slowest[0])
	}
	b.holds("0/fast")
	b.holds("0/slow")
	b.acking(fast, 120)
	b.ackedTo(fast, 120, b.era(0))
	if b.slowest[0] != 0 {
		t.Errorf("one consumer has nothing, and rows up to %d may go", b.slowest[0])
	}
	b.acking(slow, 110)
	if b.slowest[0] != 110 {
		t.Errorf("rows up to %d may go, want 110", b.slowest[0])
	}
	b.consumers["0/late"] = &consumerLog{held: true, asked: 5}
	b.acking(slow, 115)
	if b.slowest[0] != 110 {
		t.Errorf("a late one has nothing yet, and rows up to %d may go", b.slowest[0])
	}
	if b.leaving("0/late"); b.slowest[0] != 115 {
		t.Errorf("the late one is removed: rows up to %d may go, want 115", b.slowest[0])
	}
	if !b.wentBack(fast, 120) || b.wentBack(fast, 121) {
		t.Error("a cursor that went back is not told from one that did not")
	}
	b.losing(0, loss{term: 1, next: 110})
	if b.wentBack(fast, 115) {
		t.Error("two owners, and a cursor is held against one")
	}
	b.released(0)
	if b.wentBack(fast, 115) {
		t.Error("a taker begins with an older cursor, and that is held against it")
	}
	b.ackedTo(fast, 116, b.era(0))
	if !b.wentBack(fast, 116) {
		t.Error("the taker's own cursor went back, unnoticed")
	}
}

func TestJudgement(t *testing.T) {
	judge := func(b *bench, h history, live segment.Seq, rows ...sighting) {
		r := &run{ledger: b.ledger, report: newReport(Options{}), opts: Options{Logf: func(string, ...any) {}}, fleet: &fleet{}}
		j := &judgement{run: r, s: b.streams[b.stream], history: h, begins: live}
		for _, x := range rows {
			j.row(x.seq, string(rowsSent().Row(b.stream, x.n)))
		}
		j.end()
		b.said = append(b.said, r.findings...)
	}
	b := newBench(t)
	all := b.sightings(0, 30)
	whole := history{1: math.MaxInt64}
	judge(b, whole, 0, all...)
	b.quiet(t)
	judge(b, whole, 0, append(all[:30:30], sighting{130, 5})...)
	b.complains(t, "disorder: the judge read row 5")
	b.sending(b.stream, 31) // never answered: it may be there once
	judge(b, whole, 0, append(all[:30:30], sighting{130, 30})...)
	b.quiet(t)
	judge(b, whole, 0, append(all[:30:30], sighting{130, 30}, sighting{131, 30})...)
	b.complains(t, "twice: row 30")
	judge(b, whole, 0, all[1:]...)
	b.complains(t, "lacks 1 acknowledged rows")
	judge(b, whole, 101, all...)
	b.complains(t, "leak: ")
	judge(b, whole, 101, all[1:]...)
	b.quiet(t)
	judge(b, history{1: 119}, 0, all[:20]...)
	b.complains(t, "lacks 10 acknowledged rows") // no loss, no excuse
	b.losing(0, loss{term: 1, next: 120})
	judge(b, history{1: 119}, 0, all[:20]...)
	b.quiet(t)
	judge(b, history{1: 109}, 0, all[:10]...)
	b.complains(t, "lacks 10 acknowledged rows") // absorbed before the loss
	b.salvaging(0, 130)
	judge(b, history{1: 119}, 0, all[:20]...)
	b.complains(t, "not salvaged")
	b.diskGone("")
	judge(b, history{1: 119}, 0, all[:20]...)
	b.quiet(t)
}
