package orphan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/strandline/strandline/objstore"
)

// abortRounds bounds how often a key's uploads are listed and aborted in one run:
// what comes back that often is being created, and the marker comes back.
const abortRounds = 5

// Aborts counts what became of unfinished uploads (K36: a failed abort is seen).
type Aborts struct {
	Aborted int // uploads of which an abort was confirmed
	Failed  int // aborts that the store's retries did not get through
	Rounds  int
}

func (a *Aborts) add(b Aborts) {
	a.Aborted += b.Aborted
	a.Failed += b.Failed
	a.Rounds += b.Rounds
}

// UploadStore is what aborts need of a bucket; *objstore.Store is one.
type UploadStore interface {
	ListUploads(ctx context.Context, prefix string) ([]objstore.Upload, error)
	Abort(ctx context.Context, key, uploadID string) error
}

// abortUploads aborts every upload of key, the recorded and the listed ones, until
// the bucket lists none. It is an error if some are left: unfinished parts are
// billed and have no key.
func abortUploads(ctx context.Context, store UploadStore, key string, recorded []string) (Aborts, error) {
	var a Aborts
	var errs []error
	todo := recorded
	for a.Rounds = 1; a.Rounds <= abortRounds; a.Rounds++ {
		listed, err := uploadsOf(ctx, store, key)
		if err != nil {
			return a, errors.Join(append(errs, err)...)
		}
		for _, id := range listed {
			if !slices.Contains(todo, id) {
				todo = append(todo[:len(todo):len(todo)], id)
			}
		}
		if len(todo) == 0 {
			return a, nil
		}
		errs = errs[:0]
		for _, id := range todo {
			if err := abortOne(ctx, store, key, id, &a); err != nil {
				errs = append(errs, err)
			}
		}
		// Recorded ids are aborted in two rounds: a part that raced the first abort is
		// cleared by the second, although no listing shows it (versitygw).
		if a.Rounds > 1 && len(errs) == 0 {
			todo = nil
		}
	}
	left, err := uploadsOf(ctx, store, key)
	if len(left) == 0 && err == nil && len(errs) == 0 {
		return a, nil
	}
	return a, errors.Join(append(errs, err, fmt.Errorf("%s: %d unfinished uploads stand after %d rounds of aborts: they are aborted again", key, len(left), abortRounds))...)
}

// uploadsOf lists the uploads of exactly this key (K38: a prefix matches others).
func uploadsOf(ctx context.Context, store UploadStore, key string) ([]string, error) {
	ups, err := store.ListUploads(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("list uploads of %s: %w", key, err)
	}
	var ids []string
	for _, u := range ups {
		if u.Key == key {
			ids = append(ids, u.ID)
		}
	}
	return ids, nil
}

// abortOne aborts one upload and counts what became of it.
func abortOne(ctx context.Context, store UploadStore, key, id string, a *Aborts) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // a cancelled ctx starts no mutation
	}
	if err := store.Abort(ctx, key, id); err != nil {
		a.Failed++
		return fmt.Errorf("abort upload %s of %s: %w", id, key, err)
	}
	a.Aborted++
	return nil
}
