package localtier

import (
	"fmt"
	"sync"
	"testing"

	"github.com/strandline/strandline/segment"
)

func TestAppendPublishAbsorb(t *testing.T) {
	w := newWorld(t, 3)
	wr := w.open("a")
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			stream := fmt.Sprintf("stream-%d", i)
			ack := AckLocal
			if i%4 == 0 {
				ack = AckShared
			}
			if err := w.append(wr, stream, ack, names(stream, 20)...); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := wr.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.checkStored()
	if err := wr.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	w.mustClose(wr)
	for _, st := range wr.Status() {
		if st.State != StateClosed || st.UnpublishedSegments != 0 {
			t.Errorf("after close: %+v", st)
		}
	}
	if row := w.chain(0); row.Term != 1 || !row.LeaseEnd.Before(row.LeaseEnd.Add(1)) {
		t.Errorf("row %+v", row)
	}
}

func TestSharedIsAbsorbedWhenAcknowledged(t *testing.T) {
	w := newWorld(t, 1)
	wr := w.open("a")
	w.mustAppend(wr, "s", AckShared, "one")
	if got := w.stored("s"); len(got) != 1 || got[0] != "one" {
		t.Errorf("acknowledged as shared, stored %q", got)
	}
	w.mustClose(wr)
}

func TestSeqsAreGaplessAndPositionsTold(t *testing.T) {
	w := newWorld(t, 1)
	wr := w.open("a")
	next := segment.Seq(1)
	for i := range 5 {
		rows := make([]segment.Row, i+1)
		for j := range rows {
			rows[j].Payload = []byte{byte(i), byte(j)}
		}
		res, err := wr.Append(t.Context(), "s", rows, AckLocal)
		if err != nil {
			t.Fatal(err)
		}
		if res.First != next || res.Last != next+segment.Seq(i) || res.Epoch != 1 || res.Term != 1 {
			t.Errorf("append of %d rows: %+v, next seq was %d", i+1, res, next)
		}
		next = res.Last + 1
	}
	w.mustClose(wr)
}
