package localtier

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestAwait: whoever waits for a row is woken by the log, not by the look that comes every
// second, and hears of the end of the service.
func TestAwait(t *testing.T) {
	w := newWorld(t, 1)
	a := w.open("a")
	defer abandon(t, a)
	w.mustAppend(a, "x", AckLocal, "1")
	_, next, err := a.LocalShard(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Await(t.Context(), 0, next-1); err != nil {
		t.Fatalf("a row that is there: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Await(gone, 0, next); !errors.Is(err, context.Canceled) {
		t.Fatalf("a row that is not there: %v", err)
	}
	woken := make(chan error)
	wait := func() {
		go func() { woken <- a.Await(t.Context(), 0, next) }()
		waits := func() bool {
			a.shards[0].index.mu.Lock()
			defer a.shards[0].index.mu.Unlock()
			return a.shards[0].index.moved != nil
		}
		for !waits() {
			time.Sleep(10 * time.Microsecond)
		}
	}
	var took time.Duration // from each append's return: an fsync takes what it takes
	const rows = 30        // as many looks would take half a minute on the average
	for range rows {
		wait()
		w.mustAppend(a, "y", AckLocal, "2")
		began := time.Now()
		if err := <-woken; err != nil {
			t.Fatal(err)
		}
		took += time.Since(began)
		next++
	}
	if took > rows*tailLook/4 {
		t.Errorf("%d rows took %v: the log does not wake who waits", rows, took)
	}
	wait()
	a.shards[0].stop(ErrFenced)
	if err := <-woken; !errors.Is(err, ErrFenced) {
		t.Errorf("the shard stopped: %v", err)
	}
	if _, _, err := a.LocalShard(t.Context(), 7); !errors.Is(err, ErrInvalid) {
		t.Errorf("a shard that is none: %v", err)
	}
}
