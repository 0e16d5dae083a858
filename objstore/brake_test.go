package objstore_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
)

// busy answers HEADs and PUTs after a while, and refuses them for load as verdict
// says. It notes when requests came and when they were refused.
type busy struct {
	*memstore.Driver
	took    time.Duration
	verdict func(n int, at time.Time) error // n: from 1; at: when the request came

	mu            sync.Mutex
	came, refused []time.Time
}

func (b *busy) meet(ctx context.Context) error {
	b.mu.Lock()
	at := time.Now()
	b.came = append(b.came, at)
	err := b.verdict(len(b.came), at)
	b.mu.Unlock()
	select {
	case <-time.After(b.took):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err != nil {
		b.mu.Lock()
		b.refused = append(b.refused, time.Now())
		b.mu.Unlock()
	}
	return err
}

func (b *busy) Head(ctx context.Context, key string) (objstore.Info, error) {
	if err := b.meet(ctx); err != nil {
		return objstore.Info{}, err
	}
	return b.Driver.Head(ctx, key)
}

func (b *busy) Put(ctx context.Context, key string, body io.ReadSeeker, size int64, opts objstore.PutOptions) (objstore.Info, error) {
	if err := b.meet(ctx); err != nil {
		return objstore.Info{}, err
	}
	return b.Driver.Put(ctx, key, body, size, opts)
}

func slowDown(ask time.Duration) error {
	return &objstore.Error{Op: "head", Key: "k", Kind: objstore.ErrUnavailable, RetryAfter: ask, Throttled: true, Err: errors.New("SlowDown")}
}

// busyStore is a Store over b that sleeps by the (fake) clock.
func busyStore(t *testing.T, b *busy) *objstore.Store {
	t.Helper()
	b.Driver = mem(t, memstore.Options{})
	put(t, b.Driver, "k", []byte("x"))
	s, err := objstore.New(b, objstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// refuseFor refuses what comes in the first d of the test.
func refuseFor(d, ask time.Duration) func(int, time.Time) error {
	end := time.Now().Add(d)
	return func(_ int, at time.Time) error {
		if at.Before(end) {
			return slowDown(ask)
		}
		return nil
	}
}

// TestBrakeHoldsAllCallers: 16 callers that never give up send a store that is
// overloaded for ten seconds little more than the first burst.
func TestBrakeHoldsAllCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{took: 20 * time.Millisecond, verdict: refuseFor(10*time.Second, 0)}
		s := busyStore(t, b)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for {
					if _, err := s.Head(t.Context(), "k"); err == nil {
						return
					} else if !errors.Is(err, objstore.ErrUnavailable) {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		// Without the brake it is more than a thousand.
		if n := len(b.refused); n < 16 || n > 16+64 {
			t.Errorf("%d requests to a store that was overloaded for 10 s", n)
		}
		t.Logf("%d requests refused, %d in all", len(b.refused), len(b.came))
		if c := s.Counters(); c.Throttled != int64(len(b.refused)) || c.Held == 0 {
			t.Errorf("counted %d throttled, %d held; %d were refused", c.Throttled, c.Held, len(b.refused))
		}
	})
}

// TestBurstIsOneRefusal: 64 refusals of requests that were under way together double
// the hold once, not 64 times.
func TestBurstIsOneRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{took: 20 * time.Millisecond, verdict: refuseFor(10*time.Millisecond, 0)}
		s := busyStore(t, b)
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond)
				if _, err := s.Head(t.Context(), "k"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took > 40*time.Millisecond+4*objstore.DefaultBackoff+40*time.Millisecond {
			t.Errorf("held for %v after one burst", took)
		}
	})
}

// TestNobodyComesBackSooner: while the store asks for two seconds, no request of any
// caller is sent within two seconds of an answer that says so.
func TestNobodyComesBackSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ask = 2 * time.Second
		b := &busy{took: 20 * time.Millisecond, verdict: refuseFor(5*time.Second, ask)}
		s := busyStore(t, b)
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Millisecond)
				if _, err := s.Head(t.Context(), "k"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, r := range b.refused {
			for _, c := range b.came {
				if c.After(r) && c.Before(r.Add(ask)) {
					t.Fatalf("a request came %v after a refusal that asked for %v", c.Sub(r), ask)
				}
			}
		}
		if len(b.refused) == 0 {
			t.Fatal("nothing was refused")
		}
	})
}

// TestLuckySuccessDoesNotRelease: an answer that was under way, and one of the first
// after the hold, change nothing for the others.
func TestLuckySuccessDoesNotRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{took: 100 * time.Millisecond}
		b.verdict = func(n int, _ time.Time) error {
			if n == 2 {
				return slowDown(3 * time.Second)
			}
			return nil
		}
		s := busyStore(t, b)
		head := func() { _, _ = s.Head(t.Context(), "k") }
		var wg sync.WaitGroup
		wg.Go(head)
		time.Sleep(time.Millisecond)
		wg.Go(head) // refused at 101 ms, after the first one's request and before its answer is used
		time.Sleep(150 * time.Millisecond)
		wg.Go(head)
		wg.Wait()
		if len(b.came) != 4 {
			t.Fatalf("%d requests", len(b.came))
		}
		for _, c := range b.came[2:] {
			if after := c.Sub(b.refused[0]); after < 3*time.Second {
				t.Errorf("a request %v after the refusal", after)
			}
		}
	})
}

// TestBrakeIsBounded: a hold ends with its caller's ctx, and is not begun if it would
// outlast the caller's deadline; neither sends a request.
func TestBrakeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{took: time.Millisecond, verdict: refuseFor(time.Millisecond, 20*time.Second)}
		s := busyStore(t, b)
		go func() { _, _ = s.Head(t.Context(), "k") }()
		time.Sleep(time.Second)
		start := time.Now()

		short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := s.Head(short, "k")
		wantKind(t, err, objstore.ErrUnavailable)
		if ask := objstore.RetryAfter(err); ask < 18*time.Second || ask > 20*time.Second || !time.Now().Equal(start) {
			t.Errorf("after %v: %v, RetryAfter %v", time.Since(start), err, ask)
		}

		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, stop)
		_, err = s.PutOnce(ctx, "other", nil, nil)
		wantKind(t, err, objstore.ErrUnavailable)
		wantKind(t, err, context.Canceled)
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("cancelled after 2 s, ended after %v", d)
		}
		if len(b.came) != 1 {
			t.Errorf("%d requests, want the first one's only", len(b.came))
		}
		// The others, without a deadline, are held and then served.
		if _, err := s.Head(t.Context(), "k"); err != nil {
			t.Error(err)
		}
		if d := time.Since(b.refused[0]); d < 20*time.Second || d > 20*time.Second+2*objstore.MaxBackoff {
			t.Errorf("served %v after the refusal", d)
		}
	})
}

// TestLongAsk: an ask that a call may not wait for is the call's answer, at once and
// with the time in it; it does not close the Store for as long.
func TestLongAsk(t *testing.T) {
	for name, write := range map[string]func(context.Context, *objstore.Store) error{
		"read": func(ctx context.Context, s *objstore.Store) error {
			_, err := s.Head(ctx, "k")
			return err
		},
		"create-once": func(ctx context.Context, s *objstore.Store) error {
			_, err := s.PutOnce(ctx, "new", nil, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &busy{took: time.Millisecond, verdict: refuseFor(time.Millisecond, 2*time.Minute)}
				s := busyStore(t, b)
				start := time.Now()
				err := write(t.Context(), s)
				wantKind(t, err, objstore.ErrUnavailable)
				if objstore.RetryAfter(err) != 2*time.Minute || len(b.came) != 1 || time.Since(start) != time.Millisecond {
					t.Errorf("%d requests in %v: %v", len(b.came), time.Since(start), err)
				}
				if err := write(t.Context(), s); err != nil {
					t.Error(err)
				}
				if d := time.Since(start); d < objstore.MaxRetryAfter || d > objstore.MaxRetryAfter+2*objstore.MaxBackoff {
					t.Errorf("another call was served after %v", d)
				}
			})
		})
	}
}

// TestAskAfterUnknown: what ends a create-once write whose first attempt is open stays
// "unknown", and still says when to come back.
func TestAskAfterUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{took: time.Millisecond}
		b.verdict = func(n int, _ time.Time) error {
			if n == 1 {
				return &objstore.Error{Op: "put", Key: "new", Kind: objstore.ErrAmbiguous}
			}
			return slowDown(time.Minute)
		}
		_, err := busyStore(t, b).PutOnce(t.Context(), "new", nil, nil)
		wantKind(t, err, objstore.ErrAmbiguous)
		if objstore.RetryAfter(err) != time.Minute {
			t.Errorf("RetryAfter %v in %v", objstore.RetryAfter(err), err)
		}
	})
}

// TestLongAskWithAnOpenOutcome: a proxy's 503 with a long ask leaves open what became of
// the write, and whoever reads back comes back, too: that is the caller's, later.
func TestLongAskWithAnOpenOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{took: time.Millisecond}
		b.verdict = func(int, time.Time) error {
			return &objstore.Error{Op: "put", Key: "new", Kind: objstore.ErrAmbiguous, RetryAfter: time.Minute}
		}
		_, err := busyStore(t, b).PutOnce(t.Context(), "new", nil, nil)
		wantKind(t, err, objstore.ErrAmbiguous)
		if len(b.came) != 1 || objstore.RetryAfter(err) != time.Minute {
			t.Errorf("%d requests, RetryAfter %v", len(b.came), objstore.RetryAfter(err))
		}
	})
}

// TestBrakeSleepsOnce: a hold asks the injected Sleep once, and does not spin on a
// Sleep that takes no time.
func TestBrakeSleepsOnce(t *testing.T) {
	b := &busy{verdict: func(n int, _ time.Time) error {
		if n == 1 {
			return slowDown(20 * time.Second)
		}
		return nil
	}, Driver: mem(t, memstore.Options{})}
	put(t, b.Driver, "k", nil)
	var slept []time.Duration
	s := newStore(t, b, func(c *objstore.Config) {
		c.Sleep = func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil }
	})
	if _, err := s.Head(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if len(slept) != 2 || slept[0] < 20*time.Second || slept[1] > 20*time.Second+objstore.MaxBackoff {
		t.Errorf("slept %v: want the pause, and one hold", slept)
	}
}

// throttles fails each key of a delete inside an answer that came with 200.
type throttles struct {
	*memstore.Driver
	calls []time.Time
}

func (d *throttles) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	d.calls = append(d.calls, time.Now())
	if len(d.calls) > 2 {
		return d.Driver.Delete(ctx, keys)
	}
	out := make([]objstore.DeleteResult, len(keys))
	for i, k := range keys {
		out[i] = objstore.DeleteResult{Key: k, Err: &objstore.Error{Op: "delete", Key: k, Kind: objstore.ErrUnavailable, Throttled: true}}
	}
	return out, nil
}

// TestThrottledKeys: SlowDown for the keys of a bulk delete brakes as one for a call.
func TestThrottledKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &throttles{Driver: mem(t, memstore.Options{})}
		s, err := objstore.New(d, objstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		results, err := s.Delete(t.Context(), []string{"a", "b"})
		if err = errors.Join(err, results[0].Err, results[1].Err); err != nil {
			t.Fatal(err)
		}
		if n := s.Counters().Throttled; n != 2 {
			t.Errorf("%d throttled attempts counted, want 2", n)
		}
		for i, least := range []time.Duration{2 * objstore.DefaultBackoff, 4 * objstore.DefaultBackoff} {
			if gap := d.calls[i+1].Sub(d.calls[i]); gap < least {
				t.Errorf("call %d came %v after the one before, want %v at least", i+2, gap, least)
			}
		}
	})
}
