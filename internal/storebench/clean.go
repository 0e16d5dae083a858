package storebench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/objstore"
)

const (
	// cleanTimeout bounds the cleaning after an interrupt.
	cleanTimeout = 5 * time.Minute
	// lateArrival is how long a request that was given up may take to be applied.
	lateArrival = time.Second
	// removedAtOnce is a bulk delete's worth of keys.
	removedAtOnce = 1000
)

// Clean deletes everything under a run's directory and aborts its uploads, also after ctx
// has ended. A write that was given up then may land after the first look: there is a
// second one.
func Clean(ctx context.Context, store *objstore.Store, dir string) error {
	interrupted := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	err := errors.Join(abort(ctx, store, dir), Remove(ctx, store, dir))
	if interrupted && err == nil {
		<-time.After(lateArrival)
		err = errors.Join(abort(ctx, store, dir), Remove(ctx, store, dir))
	}
	if err != nil {
		return fmt.Errorf("cleaning up: %w: delete the keys under %s of %s", err, dir, store.Name())
	}
	return nil
}

func abort(ctx context.Context, store *objstore.Store, dir string) error {
	uploads, err := store.ListUploads(ctx, dir)
	for _, u := range uploads {
		err = errors.Join(err, store.Abort(ctx, u.Key, u.ID))
	}
	return err
}

// Remove deletes every key under a directory of a run.
func Remove(ctx context.Context, store *objstore.Store, dir string) error {
	for {
		var keys []string
		for info, err := range store.List(ctx, dir, "") {
			if err != nil {
				return err
			}
			if keys = append(keys, info.Key); len(keys) == removedAtOnce {
				break
			}
		}
		if len(keys) == 0 {
			return nil
		}
		fates, err := store.Delete(ctx, keys)
		if err := errors.Join(err, failures(fates)); err != nil {
			return err
		}
	}
}

func failures(fates []objstore.DeleteResult) error {
	var errs []error
	for _, f := range fates {
		if f.Err != nil {
			errs = append(errs, f.Err)
		}
	}
	return errors.Join(errs...)
}
