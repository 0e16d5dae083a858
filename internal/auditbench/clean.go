package auditbench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// cleanTimeout bounds the cleaning after an interrupt.
	cleanTimeout = 5 * time.Minute
	// lateArrival is how long a request that was given up may take to be applied.
	lateArrival = time.Second
)

// clean deletes everything under the run's prefix and aborts its uploads, also after ctx
// has ended. A write that was given up then may land after the first look: there is a
// second one.
func (b *bench) clean(ctx context.Context) error {
	interrupted := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	err := errors.Join(b.abort(ctx), b.remove(ctx, b.dir))
	if interrupted && err == nil {
		<-time.After(lateArrival)
		err = errors.Join(b.abort(ctx), b.remove(ctx, b.dir))
	}
	if err != nil {
		return fmt.Errorf("cleaning up: %w: delete the keys under %s of %s", err, b.dir, b.store.Name())
	}
	return nil
}

func (b *bench) abort(ctx context.Context) error {
	uploads, err := b.store.ListUploads(ctx, b.dir)
	for _, u := range uploads {
		err = errors.Join(err, b.store.Abort(ctx, u.Key, u.ID))
	}
	return err
}

// remove deletes every key under a directory of this run, a bulk delete's worth at a time.
func (b *bench) remove(ctx context.Context, dir string) error {
	const most = 1000
	for {
		var keys []string
		for info, err := range b.store.List(ctx, dir, "") {
			if err != nil {
				return err
			}
			if keys = append(keys, info.Key); len(keys) == most {
				break
			}
		}
		if len(keys) == 0 {
			return nil
		}
		fates, err := b.store.Delete(ctx, keys)
		for _, f := range fates {
			err = errors.Join(err, f.Err)
		}
		if err != nil {
			return err
		}
	}
}
