package httpapi

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/strandline/strandline/segment"
)

// defaultFollowPoll is how often the catalog is asked for a stream that is followed.
const defaultFollowPoll = time.Second

// tipTime bounds one look.
const tipTime = 10 * time.Second

// tip is how far the bucket has a stream, or a chain.
type tip struct {
	next segment.Pos // behind the last row that is absorbed; zero: there is none
	// closed says that nothing comes behind it any more.
	closed bool
}

// tips are the looks at the catalog of those who follow what other processes write: one
// verb every so often for each stream (or chain) that is followed, however many follow it.
// The looks at different streams are spread over the time between two.
type tips struct {
	every time.Duration
	asked atomic.Int64 // verbs

	mu    sync.Mutex
	began time.Time
	of    map[string]*look
}

// look is the last one at a stream or chain.
type look struct {
	users int
	turn  int64
	done  chan struct{} // closed once tip and err stand; nil: nobody looked yet
	tip   tip
	err   error
}

// hold keeps a place for a follower's looks until it is let go.
func (t *tips) hold(key string) (letGo func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of, t.began = map[string]*look{}, time.Now()
	}
	if t.of[key] == nil {
		t.of[key] = &look{}
	}
	t.of[key].users++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.of[key].users--; t.of[key].users == 0 {
			delete(t.of, key)
		}
	}
}

// turn is the number of the present turn to look, and how long it is to the next.
func (t *tips) turn(key string) (turn int64, left time.Duration) {
	since := time.Since(t.began) + time.Duration(xxhash.Sum64String(key)%uint64(t.every)) //nolint:gosec // below every
	return int64(since / t.every), t.every - since%t.every
}

// look is the tip as of this turn: asked for by the first who wants it.
func (t *tips) look(ctx context.Context, key string, ask func(context.Context) (tip, error)) (tip, error) {
	t.mu.Lock()
	turn, _ := t.turn(key)
	l := t.of[key]
	if l.done == nil || l.turn != turn {
		l.turn, l.done = turn, make(chan struct{})
		done := l.done
		t.mu.Unlock()
		// For all who wait: it does not end with the one who asks.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tipTime)
		defer cancel()
		t.asked.Add(1)
		got, err := ask(ctx)
		t.mu.Lock()
		if l.done == done {
			l.tip, l.err = got, err
		}
		t.mu.Unlock()
		close(done)
		return got, err
	}
	done := l.done
	t.mu.Unlock()
	select {
	case <-done:
		t.mu.Lock()
		defer t.mu.Unlock()
		return l.tip, l.err
	case <-ctx.Done():
		return tip{}, context.Cause(ctx)
	}
}
