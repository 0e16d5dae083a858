package doctor

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/strandline/strandline/objstore"
)

// QuickTime is what a start spends at most.
const QuickTime = 2 * time.Second

// quickNames are the checks of a start, by the names of the long form.
func quickNames() []string {
	return []string{
		"create-once", "replace", "complete-once", "list-after-write", "delete-visible",
		"versioning", "object-lock", lifecycleExpiryCheck, "clock", "clock-close",
	}
}

// Quick proves in about a dozen requests, and within opts.Limit with its cleanup, what a
// start must know: that create-once writes, conditional completes and stale If-Match are
// honoured, that listings and deletes are seen at once, and that no versions are kept.
//
// It proves less than Run: no races, no copies. A store too slow for it is no proof of
// anything: such checks are Failed, and a start warns of them. Report.Refused are what a
// start must refuse. The error is that of a ctx that ended.
func Quick(ctx context.Context, d objstore.Driver, opts Options) (_ Report, err error) {
	opts, err = opts.complete()
	if err != nil {
		return Report{}, err
	}
	q := &quick{session: newSession(d, opts, opts.Limit/8), ends: map[string]error{}}
	// The rest of the time is for a write under way at the end of it, and for the cleanup.
	limited, cancel := context.WithTimeout(ctx, opts.Limit*5/8)
	defer cancel()
	q.inspect(limited)
	if unwritten := q.unwritten(); unwritten != nil {
		q.conclude(unwritten)
	} else {
		q.prove(limited)
		q.conclude(errors.New("it was not come to: the write before it did not succeed"))
	}
	left := q.cleanup(ctx, opts.Limit/4)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return q.report(left), err
}

// quick is a session that works on one key.
type quick struct {
	*session

	mu   sync.Mutex
	ends map[string]error // by check; a name that is not there was not reached
}

func (q *quick) end(name string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ends[name] == nil {
		q.ends[name] = err
	}
}

// inspect runs the checks that only ask.
func (q *quick) inspect(ctx context.Context) {
	t := &trial{session: q.session}
	for _, c := range slices.Concat(settingsChecks(), clockChecks()) {
		if slices.Contains(quickNames(), c.name) {
			q.end(c.name, c.run(ctx, t))
		}
	}
}

// unwritten is why nothing is written, or nil. A versioned bucket would keep what is
// written, at every try of a process that is started again and again.
func (q *quick) unwritten() error {
	if q.opts.ReadOnly {
		return skips("nothing is written")
	}
	for name, end := range q.ends {
		var v *verdict
		if name != lifecycleExpiryCheck && errors.As(end, &v) && v.lie {
			return skips("not asked: the bucket is refused already")
		}
	}
	return nil
}

// prove makes one object and tries to break it in three ways at once: a request after the
// other would be too many for a store far away.
func (q *quick) prove(ctx context.Context) {
	key, first := q.dir+"key", []byte("first")
	if _, err := q.put(ctx, key, first, once); err != nil {
		q.end("create-once", err)
		return
	}
	var attempts sync.WaitGroup
	attempts.Go(func() { q.end("create-once", q.again(ctx, key)) })
	attempts.Go(func() { q.end("replace", q.stale(ctx, key)) })
	attempts.Go(func() { q.end("complete-once", q.byUpload(ctx, key)) })
	attempts.Wait()
	q.unchanged(ctx, key, first)
	q.end("list-after-write", q.shown(ctx, key))
	q.end("delete-visible", q.deleted(ctx, key))
}

// What each attempt would write, so that the object tells which of them did.
const (
	bySecondPut = "second PUT"
	byStalePut  = "stale PUT"
	byComplete  = "complete"
)

func (q *quick) again(ctx context.Context, key string) error {
	_, err := q.put(ctx, key, []byte(bySecondPut), once)
	return refusedAs(err, objstore.ErrExists, "If-None-Match is ignored: a second PUT of the key was taken")
}

func (q *quick) stale(ctx context.Context, key string) error {
	_, err := q.put(ctx, key, []byte(byStalePut), objstore.PutOptions{IfMatch: neverETag})
	return refusedAs(err, objstore.ErrPrecondition, "If-Match is ignored: a PUT with a stale ETag was taken")
}

func (q *quick) byUpload(ctx context.Context, key string) error {
	if err := (&trial{session: q.session}).conditional(); err != nil {
		return err
	}
	id, parts, err := q.upload(ctx, key, []byte(byComplete), nil)
	if err != nil {
		return err
	}
	_, err = q.d.Complete(ctx, key, id, parts, once)
	if err == nil {
		return lies("If-None-Match is ignored on a complete: it replaced a standing object")
	}
	// An abort that fails is tried again by the cleanup.
	_ = q.d.Abort(ctx, key, id)
	return refusedAs(err, objstore.ErrExists, "")
}

// unchanged finds the attempt that was refused and all the same changed the object.
func (q *quick) unchanged(ctx context.Context, key string, first []byte) {
	blamed := map[string]string{bySecondPut: "create-once", byStalePut: "replace", byComplete: "complete-once"}
	var got []byte
	// Bytes that nobody wrote are read once more: a bit that flipped on the way would refuse
	// the start of a whole deployment.
	for range 2 {
		var err error
		if got, _, err = q.read(ctx, key, objstore.Whole, ""); err != nil {
			q.end("create-once", err)
			return
		}
		if bytes.Equal(got, first) {
			return
		}
		if check, ok := blamed[string(got)]; ok {
			q.end(check, lies("the write was refused, and changed the object"))
			return
		}
	}
	q.end("create-once", lies("the object holds %.20q, which nobody wrote", got))
}

// shown lists all runs' keys at once, for the leftovers among them.
func (q *quick) shown(ctx context.Context, key string) error {
	list, err := q.listed(ctx, q.opts.Prefix, "", maxList)
	if err != nil {
		return err
	}
	now, ok := q.storeTime(list, key)
	if !ok {
		return lies("a listing does not show what was just written")
	}
	q.sweepObjects(ctx, list, now)
	return nil
}

func (q *quick) deleted(ctx context.Context, key string) error {
	if err := q.remove(ctx, key); err != nil {
		return err
	}
	_, err := q.d.Head(ctx, key)
	return refusedAs(err, objstore.ErrNotFound, "a key that was reported as deleted stands")
}

// conclude turns the ends into results. What was not reached ends as unreached says.
func (q *quick) conclude(unreached error) {
	for _, c := range checks() {
		if !slices.Contains(quickNames(), c.name) {
			continue
		}
		err, reached := q.ends[c.name]
		if !reached {
			err = unreached
		}
		r := judge(c, err)
		if c.name == lifecycleExpiryCheck {
			r.Required = false // no primitive: a refusal would not stop the rule
		}
		q.take(c, r)
	}
}
