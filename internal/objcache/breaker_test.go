package objcache

import (
	"testing"
	"time"
)

func TestBreaker(t *testing.T) {
	now := time.Unix(1000, 0)
	b := &breaker{clock: func() time.Time { return now }, rest: time.Second}
	for range 2 {
		if !b.allow() {
			t.Fatal("closed to begin with")
		}
	}
	if !b.failed() || b.failed() {
		t.Fatal("one outage is found once, also by two calls")
	}
	if b.allow() {
		t.Fatal("asked right after it failed")
	}
	now = now.Add(time.Second)
	if !b.allow() || b.allow() {
		t.Fatal("not exactly one call tries again")
	}
	b.abandoned()
	if !b.allow() {
		t.Fatal("a call that showed nothing took the turn for good")
	}
	if b.failed() {
		t.Fatal("news of an outage that is known")
	}
	longest := time.Duration(0)
	for range 20 {
		for wait := time.Duration(0); !b.allow(); wait += 100 * time.Millisecond {
			now = now.Add(100 * time.Millisecond)
			longest = max(longest, wait)
		}
		b.failed()
	}
	if longest < MaxRest/2-time.Second || longest > MaxRest {
		t.Errorf("left alone for %v at most", longest)
	}
	now = now.Add(MaxRest)
	if !b.allow() || !b.ok() || b.ok() || !b.allow() || !b.allow() {
		t.Error("not closed after a success")
	}
}

func TestQueue(t *testing.T) {
	q := &queue{limit: 3}
	for _, k := range []string{"a", "b", "c", "a"} {
		if n := q.add(k); n != 0 {
			t.Errorf("%s dropped %d", k, n)
		}
	}
	batch := q.oldest(2)
	if len(batch) != 2 || batch[0].key != "b" || batch[1].key != "c" {
		t.Fatalf("%+v", batch)
	}
	q.add("b") // deleted again while the batch is on its way
	q.settle(batch)
	if q.size() != 2 || !q.holds("b") || q.holds("c") || !q.holds("a") {
		t.Errorf("%+v", q.oldest(9))
	}
	if n := q.add("d") + q.add("e"); n != 1 || q.holds("a") || q.size() != 3 {
		t.Errorf("%d dropped, %+v left: the oldest goes at the limit", n, q.oldest(9))
	}
}
