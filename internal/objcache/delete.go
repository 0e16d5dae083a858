package objcache

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/strandline/strandline/internal/objcache/wire"
	"github.com/strandline/strandline/objstore"
)

// fate is what became of one key.
type fate struct {
	key   string
	in    *instance // nil: not cacheable
	err   error
	done  bool // an instance reported it as gone
	asked bool // an instance may have deleted it
}

// Delete implements objstore.Driver. Keys go to their instances, which forget them and
// delete them; whatever an instance does not report as gone is deleted directly, and
// the instance told later. Deletes are idempotent and keys are not used again, so that
// one which arrives twice, or late, does nothing.
//
// A key whose instance gave no answer is ErrAmbiguous, unless the direct delete settles it.
func (d *Driver) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	if len(keys) == 0 || len(keys) > d.Capabilities().MaxDeleteSet {
		return d.Driver.Delete(ctx, keys)
	}
	fates := make([]fate, len(keys))
	byInstance := map[*instance][]*fate{}
	for i, key := range keys {
		f := &fates[i]
		f.key, f.in = key, d.of(key)
		if f.in != nil {
			byInstance[f.in] = append(byInstance[f.in], f)
		}
	}
	var calls sync.WaitGroup
	for in, group := range byInstance {
		if in.allow() {
			calls.Go(func() { d.through(ctx, in, group) })
		}
	}
	calls.Wait()
	if err := d.direct(ctx, fates); err != nil {
		return nil, err
	}
	out := make([]objstore.DeleteResult, len(keys))
	for i := range fates {
		out[i] = objstore.DeleteResult{Key: keys[i], Err: fates[i].err}
	}
	return out, nil
}

// through deletes the keys of one instance there.
func (d *Driver) through(ctx context.Context, in *instance, group []*fate) {
	keys := make([]string, len(group))
	for i, f := range group {
		keys[i] = f.key
	}
	for n := 0; n < len(keys); n += wire.MaxKeys {
		set := group[n:min(n+wire.MaxKeys, len(keys))]
		var answer wire.Fates
		sent, err := d.post(ctx, in, wire.PathDelete, keys[n:n+len(set)], &answer)
		if err == nil {
			err = exact(set, answer.Fates)
		}
		d.judge(ctx, in, err)
		var refused *refusal
		for i, f := range set {
			if err == nil {
				f.err = answer.Fates[i].Err()
				f.done = f.err == nil
				f.asked = errors.Is(f.err, objstore.ErrAmbiguous)
			} else {
				f.err = &objstore.Error{Op: "delete", Key: f.key, Kind: objstore.ErrUnavailable, Err: fmt.Errorf("object cache %s: %w", in.addr, err)}
				f.asked = sent && !errors.As(err, &refused) // a refusal deletes nothing
			}
			if f.done {
				d.stats.deletes.Add(1)
			}
		}
		if err != nil {
			return
		}
	}
}

// exact: an answer that does not name each key in its place is none.
func exact(set []*fate, fates []wire.Fate) error {
	if len(fates) != len(set) {
		return fmt.Errorf("%d keys were sent, %d were answered", len(set), len(fates))
	}
	for i, f := range set {
		if fates[i].Key != f.key {
			return fmt.Errorf("key %d is %s, the answer names %s", i, f.key, fates[i].Key)
		}
	}
	return nil
}

// direct deletes at the store what no instance reported as gone. Its error is for a call that
// failed as a whole, which it did only if no key was settled before.
func (d *Driver) direct(ctx context.Context, fates []fate) error {
	var keys []string
	var open []*fate
	settled := false
	for i := range fates {
		if f := &fates[i]; !f.done {
			keys, open = append(keys, f.key), append(open, f)
			settled = settled || f.asked
		} else {
			settled = true
		}
	}
	if len(keys) == 0 {
		return nil
	}
	var results []objstore.DeleteResult
	err := ctx.Err() // a finished context starts no mutation
	if err != nil {
		err = &objstore.Error{Op: "delete", Key: keys[0], Kind: objstore.ErrUnavailable, Err: context.Cause(ctx)}
	} else {
		results, err = d.Driver.Delete(ctx, keys)
		d.owe(open) // after it: what was filled meanwhile has to go, too
	}
	if err != nil && !settled {
		return err
	}
	for i, f := range open {
		now := err
		if err == nil {
			now = resultOf(results, i, f.key)
		}
		f.err = weigh(f, now)
	}
	return nil
}

func resultOf(results []objstore.DeleteResult, i int, key string) error {
	if i < len(results) && results[i].Key == key {
		return results[i].Err
	}
	return &objstore.Error{Op: "delete", Key: key, Kind: objstore.ErrAmbiguous, Err: errors.New("the store did not report this key: delete it again")}
}

// weigh joins what the instance left open with what the store said.
func weigh(f *fate, store error) error {
	if store == nil || !f.asked || errors.Is(store, objstore.ErrAmbiguous) {
		return store
	}
	return &objstore.Error{Op: "delete", Key: f.key, Kind: objstore.ErrAmbiguous, Err: fmt.Errorf(
		"its instance of the object cache may have deleted it (%w), the store refused (%w): delete it again", f.err, store)}
}
