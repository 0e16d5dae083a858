package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// UnreadableItem is an object of which reads do not complete, while its bucket answers: a
// disk under the store gives its bytes no more, or the store refuses them. That proves
// nothing of its rows.
type UnreadableItem struct {
	Key    string `json:"key"`
	Bucket string `json:"bucket"`
	Why    string `json:"why"`
}

// errPassed: a read did not complete, which is told, and the walk goes on.
var errPassed = errors.New("check: could not be read")

// refused: the read did not complete. It is no verdict, whatever it says.
func refused(err error) bool {
	return errors.Is(err, objstore.ErrShort) || errors.Is(err, objstore.ErrUnavailable) || errors.Is(err, objstore.ErrDenied)
}

// pass tells of an object that cannot be read, and says errPassed. If the bucket itself
// does not answer, it is the bucket that cannot be read, and err stays an error.
func (w *walk) pass(ctx context.Context, at place, key string, err error) error {
	if ctx.Err() != nil || !refused(err) {
		return err
	}
	if other := answers(ctx, at.store); other != nil {
		return fmt.Errorf("%w; nor does the bucket answer: %w", err, other)
	}
	w.unreadable(UnreadableItem{Key: key, Bucket: at.store.Name(), Why: err.Error()})
	return errPassed
}

// passed takes out what is told already.
func passed(err error) error {
	if errors.Is(err, errPassed) {
		return nil
	}
	return err
}

// answers asks a bucket for another object than the one in question. That there is no
// stamp is an answer, too.
func answers(ctx context.Context, store *objstore.Store) error {
	if _, _, err := store.ReadSuffix(ctx, segment.StampKey(), 1); err != nil && !errors.Is(err, objstore.ErrNotFound) {
		return err
	}
	return nil
}

// stands says of an object whose read of one byte ended so, whether it is there: one that
// cannot be read is, if a HEAD says so.
func stands(ctx context.Context, store *objstore.Store, key string, err error) (bool, error) {
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		return false, nil
	case err == nil || ctx.Err() != nil || !refused(err) || answers(ctx, store) != nil:
		return err == nil, err
	}
	if _, herr := store.Head(ctx, key); herr != nil {
		return false, err
	}
	return true, nil
}

// unreadable reports an object once a bucket, however often it was asked for.
func (w *walk) unreadable(item UnreadableItem) {
	w.add(func(r *Report) {
		id := item.Bucket + " " + item.Key
		if w.passed[id] {
			return
		}
		w.passed[id] = true
		add(&r.Unreadable, &r.UnreadableTotal, w.cfg.MaxFindings, item)
	})
}
