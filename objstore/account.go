package objstore

import (
	"errors"
	"maps"
	"sync/atomic"
	"time"
)

// Account is what Counters says in more detail: for those who watch a Store.
type Account struct {
	Ops map[Op]OpAccount
	// Retries are pauses before a further attempt of the same call.
	Retries                        int64
	Throttled, Held                int64 // as in Counters
	BytesIn, BytesOut, BytesCopied int64
	// Braked is how long the brake holds attempts back from now on; 0: not at all.
	Braked time.Duration
}

// OpAccount is one driver call's.
type OpAccount struct {
	Requests int64
	// Failed attempts by kind, as Kind names it. A condition that did not hold and an
	// object that is not there are answers, too: they are kinds of their own.
	Failed map[string]int64
	// Seconds that all attempts took, and how many took up to each of TimeBounds; the last
	// is of those that took longer. A body that is read after the answer is not in it.
	Seconds float64
	Buckets []int64
}

// timeBounds reach from a directory on a local disk to a store that answers only at the
// call's deadline.
var timeBounds = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 10 * time.Second, 30 * time.Second,
}

// TimeBounds are the upper bounds of OpAccount.Buckets.
func TimeBounds() []time.Duration { return timeBounds[:] }

// kindNames are the closed set of kinds in a word each; Kind gives errorOther for what is
// outside of it.
var kindNames = [...]struct {
	kind error
	name string
}{
	{ErrNotFound, "not-found"},
	{ErrExists, "exists"},
	{ErrPrecondition, "precondition"},
	{ErrConflict, "conflict"},
	{ErrUnavailable, "unavailable"},
	{ErrAmbiguous, "ambiguous"},
	{ErrDenied, "denied"},
	{ErrRange, "range"},
	{ErrShort, "short"},
	{ErrInvalid, "invalid"},
	{ErrUnsupported, "unsupported"},
	{ErrCorrupt, "corrupt"},
	{ErrNoSpace, "no-space"},
}

const errorOther = "other"

// kindOf is the place of err's kind in kindNames, or behind its end.
func kindOf(err error) int {
	for i, k := range kindNames {
		if errors.Is(err, k.kind) {
			return i
		}
	}
	return len(kindNames)
}

// tally counts one driver call; every field is atomic.
type tally struct {
	requests, errors atomic.Int64
	kinds            [len(kindNames) + 1]atomic.Int64
	nanos            atomic.Int64
	buckets          [len(timeBounds) + 1]atomic.Int64
}

// took counts an attempt that is over.
func (t *tally) took(d time.Duration, err error) {
	t.nanos.Add(int64(d))
	i := 0
	for i < len(timeBounds) && d > timeBounds[i] {
		i++
	}
	t.buckets[i].Add(1)
	if err != nil {
		t.errors.Add(1)
		t.kinds[kindOf(err)].Add(1)
	}
}

func (t *tally) account() OpAccount {
	a := OpAccount{
		Requests: t.requests.Load(), Seconds: time.Duration(t.nanos.Load()).Seconds(),
		Failed: map[string]int64{}, Buckets: make([]int64, len(t.buckets)),
	}
	for i := range t.buckets {
		a.Buckets[i] = t.buckets[i].Load()
	}
	for i := range t.kinds {
		if n := t.kinds[i].Load(); n > 0 {
			name := errorOther
			if i < len(kindNames) {
				name = kindNames[i].name
			}
			a.Failed[name] = n
		}
	}
	return a
}

// Account is a snapshot since New; operations that were never called are left out.
func (s *Store) Account() Account {
	st := &s.stats
	a := Account{
		Ops: map[Op]OpAccount{}, Retries: st.retries.Load(), Throttled: st.throttled.Load(), Held: st.held.Load(),
		BytesIn: st.bytesIn.Load(), BytesOut: st.bytesOut.Load(), BytesCopied: st.bytesCopied.Load(),
	}
	for _, op := range ops() {
		if t := st.of(op); t.requests.Load() > 0 {
			a.Ops[op] = t.account()
		}
	}
	until, _ := s.brake.next()
	a.Braked = max(time.Until(until), 0)
	return a
}

// Add sums accounts: of the Stores around one bucket.
func (a *Account) Add(b Account) {
	if a.Ops == nil {
		a.Ops = map[Op]OpAccount{}
	}
	for op, more := range b.Ops {
		sum, ok := a.Ops[op]
		if !ok {
			more.Failed, more.Buckets = maps.Clone(more.Failed), append([]int64(nil), more.Buckets...)
			a.Ops[op] = more
			continue
		}
		sum.Requests += more.Requests
		sum.Seconds += more.Seconds
		for kind, n := range more.Failed {
			sum.Failed[kind] += n
		}
		for i, n := range more.Buckets {
			sum.Buckets[i] += n
		}
		a.Ops[op] = sum
	}
	a.Retries, a.Throttled, a.Held = a.Retries+b.Retries, a.Throttled+b.Throttled, a.Held+b.Held
	a.BytesIn, a.BytesOut, a.BytesCopied = a.BytesIn+b.BytesIn, a.BytesOut+b.BytesOut, a.BytesCopied+b.BytesCopied
	a.Braked = max(a.Braked, b.Braked)
}
