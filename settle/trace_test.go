package settle

import (
	"context"
	"sync"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// TestTraceJobs: each output is begun and ended once, under its key, with what it moved.
func TestTraceJobs(t *testing.T) {
	x := newTier(t)
	x.fill(2)
	var mu sync.Mutex
	ended := map[string]Traced{}
	d := x.deps(x.store, x.db)
	d.Trace = func(ctx context.Context, key string) (context.Context, func(Traced)) {
		return ctx, func(e Traced) {
			mu.Lock()
			defer mu.Unlock()
			if _, twice := ended[key]; twice {
				t.Errorf("%s ended twice", key)
			}
			ended[key] = e
		}
	}
	s, err := New(d, now())
	if err != nil {
		t.Fatal(err)
	}
	rep := x.once(s)
	var bytes, through, puts int64
	for key, e := range ended {
		bytes, through, puts = bytes+e.Bytes, through+e.Through, puts+e.Requests.Requests[objstore.OpPut]
		if e.Err != nil || e.Members == 0 || e.Bytes == 0 {
			t.Errorf("%s: %+v", key, e)
		}
	}
	if len(ended) != rep.Outputs || bytes != rep.StoredBytes || through != rep.Through || puts < int64(rep.Outputs) {
		t.Errorf("%d jobs, %d bytes, %d through, %d puts; the report says %+v", len(ended), bytes, through, puts, rep)
	}
}
