package httpapi

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// TestFollowTrimmedBehindAnOlderEpoch: a follower whose next rows its epoch's chain gave up is told,
// also while an older epoch's chain keeps rows: those lie behind it, and the first live row of
// the stream is not where it goes on.
func TestFollowTrimmedBehindAnOlderEpoch(t *testing.T) {
	s := newSite(t, 1)
	s.append("a", "kept")
	s.flush()
	s.reshard(1)
	res := s.append("a", "given up", "given up, too")
	s.flush() // a slot of its own
	s.append("a", "left")
	s.flush()
	chain := segment.Chain{Epoch: 2}
	row, err := s.cat.Chain(t.Context(), chain)
	s.must(err)
	slots, err := s.cat.Slots(t.Context(), chain, 1, 100)
	s.must(err)
	w := catalog.Watermark{Chain: chain, Term: row.Term, Seq: res.Last}
	for i := range slots {
		if slots[i].First <= res.Last && res.Last < slots[i].Next {
			w.Segment = slots[i].ID
		}
	}
	_, err = s.cat.RaiseWatermark(t.Context(), w)
	s.must(err)
	rows := "/v1/streams/a/rows"
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, p, err := followed(ctx, s.other.URL, rows, url.Values{"from": {fmt.Sprintf("2.%d", res.First)}}, false)
	if err != nil || p == nil || p.Code != "trimmed" || p.First == nil || *p.First != res.Last+1 {
		t.Errorf("from the first row of epoch 2: %+v, %v", p, err)
	}
	f := mustFollow(t, s.other.URL, rows, url.Values{"after": {fmt.Sprintf("2.%d", res.Last)}})
	mustNext(t, f, "left")
	if n := s.cat.plans.Load(); n > 50 {
		t.Errorf("%d plans were asked for", n)
	}
}
