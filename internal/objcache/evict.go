package objcache

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/strandline/strandline/internal/objcache/wire"
)

// queue holds the keys that an instance has yet to forget, oldest first. At its limit
// the oldest are dropped: the instance's max-age covers them.
type queue struct {
	limit int

	mu    sync.Mutex // all below
	order list.List  // of *owed
	byKey map[string]*list.Element
	stamp uint64
}

type owed struct {
	key   string
	stamp uint64 // raised when the key is deleted again
}

// add returns how many keys were dropped.
func (q *queue) add(key string) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stamp++
	if e, ok := q.byKey[key]; ok {
		e.Value.(*owed).stamp = q.stamp
		q.order.MoveToBack(e)
		return 0
	}
	if q.byKey == nil {
		q.byKey = map[string]*list.Element{}
	}
	q.byKey[key] = q.order.PushBack(&owed{key, q.stamp})
	for q.order.Len() > q.limit {
		q.remove(q.order.Front())
		dropped++
	}
	return dropped
}

func (q *queue) remove(e *list.Element) { delete(q.byKey, q.order.Remove(e).(*owed).key) }

// oldest copies up to n entries.
func (q *queue) oldest(n int) []owed {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []owed
	for e := q.order.Front(); e != nil && len(out) < n; e = e.Next() {
		out = append(out, *e.Value.(*owed))
	}
	return out
}

// settle removes entries, but not those whose key was deleted again meanwhile.
func (q *queue) settle(done []owed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range done {
		if e, ok := q.byKey[o.key]; ok && e.Value.(*owed).stamp == o.stamp {
			q.remove(e)
		}
	}
}

func (q *queue) holds(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.byKey[key]
	return ok
}

func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.order.Len()
}

// owe queues keys that were deleted without their instance.
func (d *Driver) owe(fates []*fate) {
	any := false
	for _, f := range fates {
		if f.in == nil {
			continue
		}
		any = true
		d.stats.direct.Add(1)
		d.stats.dropped.Add(int64(f.in.owed.add(f.key)))
	}
	if !any {
		return
	}
	d.start.Do(func() {
		if d.ctx.Err() == nil {
			d.work.Go(d.evicting)
		}
	})
	select {
	case d.wake <- struct{}{}:
	default: // it is awake already
	}
}

// evicting tells instances what they owe us, over and over, until Close.
func (d *Driver) evicting() {
	for failures := 0; ; {
		if d.evictAll(d.ctx) {
			failures = 0
			select {
			case <-d.wake:
			case <-d.ctx.Done():
				return
			}
			continue
		}
		t := time.NewTimer(jitter(d.cfg.Rest, failures))
		failures++
		select {
		case <-t.C:
		case <-d.ctx.Done():
			t.Stop()
			return
		}
	}
}

// evictAll goes over the instances once; false: one of them still owes.
func (d *Driver) evictAll(ctx context.Context) bool {
	all := true
	for _, in := range d.instances {
		for {
			batch := in.owed.oldest(wire.MaxKeys)
			if len(batch) == 0 {
				break
			}
			if !d.evict(ctx, in, batch) {
				all = false
				break
			}
		}
	}
	return all
}

// evict has an instance forget keys. It does not ask the breaker: the queue has its
// own pauses, and what it learns is of use to the breaker.
func (d *Driver) evict(ctx context.Context, in *instance, batch []owed) bool {
	keys := make([]string, len(batch))
	for i, o := range batch {
		keys[i] = o.key
	}
	var none struct{}
	_, err := d.post(ctx, in, wire.PathEvict, keys, &none)
	if err != nil && !otherBucket(err) { // one of another bucket has nothing to forget
		return false
	}
	if err == nil {
		d.well(in)
	}
	in.owed.settle(batch)
	d.stats.evicted.Add(int64(len(batch)))
	return true
}

// lastCall is Close's: one try, in short time, since the queue ends with the process.
func (d *Driver) lastCall() {
	for _, in := range d.instances {
		if in.owed.size() == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), d.cfg.AnswerTimeout)
		for batch := in.owed.oldest(wire.MaxKeys); len(batch) > 0 && d.evict(ctx, in, batch); {
			batch = in.owed.oldest(wire.MaxKeys)
		}
		cancel()
		if left := in.owed.size(); left > 0 {
			d.stats.dropped.Add(int64(left))
			d.cfg.Logger.Warn("an instance of the object cache was not told of deletes: it may give these keys until its max-age", "instance", in.addr, "keys", left)
		}
	}
}
