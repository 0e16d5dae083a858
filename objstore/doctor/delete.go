package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/objstore"
)

// present is how many of the keys of the bulk delete stand.
const present = 3

func deleteChecks() []check {
	return []check{
		{
			name: "abort-twice", required: true, needs: []string{actPut, actAbort}, run: abortTwice,
			proves: "an upload is aborted, again without harm, and cannot be completed after",
			breaks: "the orphan judge's word is not the last: an upload it aborted publishes an object later",
		},
		{
			name: "bulk-delete", required: true, needs: []string{actPut, actGet, actDelete}, run: bulkDelete,
			proves: "one call deletes as many keys as declared, absent ones too, and tells the fate of each",
			breaks: "I5: keys that were reported as deleted stand, unwatched and billed",
		},
		{
			name: "delete-visible", required: true, needs: []string{actPut, actGet, actDelete}, run: deleteVisible,
			proves: "what is deleted is gone for reads, and what is created in its place is what they give",
			breaks: "I7: readers are served dead bytes from a cache in the way",
		},
	}
}

func abortTwice(ctx context.Context, t *trial) error {
	key := t.key("key")
	id, parts, err := t.upload(ctx, key, []byte("dead"), nil)
	if err != nil {
		return err
	}
	for range 2 {
		if err := t.d.Abort(ctx, key, id); err != nil {
			return err
		}
	}
	_, err = t.d.Complete(ctx, key, id, parts, once)
	switch {
	case err == nil:
		return lies("an aborted upload was completed")
	case errors.Is(err, objstore.ErrDenied), errors.Is(err, objstore.ErrUnavailable), errors.Is(err, objstore.ErrAmbiguous):
		return err
	}
	return nil // refused, in whatever words
}

func bulkDelete(ctx context.Context, t *trial) error {
	n := max(t.d.Capabilities().MaxDeleteSet, present)
	t.detail = fmt.Sprintf("%d keys in one call", n)
	if t.settings.settings.Versioning != "" {
		n = 2 * present
		t.detail = fmt.Sprintf("only %d keys: a versioned bucket keeps a marker for each, the absent ones too", n)
	}
	keys := make([]string, n)
	for i := range keys {
		keys[i] = t.key(fmt.Sprintf("%04d", i))
		if i < present {
			if _, err := t.make(ctx, keys[i], tenBytes); err != nil {
				return err
			}
		}
	}
	results, err := t.d.Delete(ctx, keys)
	if err != nil {
		return err
	}
	if len(results) != n {
		return lies("a delete of %d keys tells the fate of %d", n, len(results))
	}
	for i, r := range results {
		if r.Key != keys[i] {
			return lies("a delete tells the fate of other keys than it was asked for")
		}
		if r.Err != nil {
			return fmt.Errorf("of %d keys: %w", n, r.Err)
		}
	}
	for _, key := range keys[:present] {
		_, err := t.d.Head(ctx, key)
		if err := refusedAs(err, objstore.ErrNotFound, "a key that was reported as deleted stands"); err != nil {
			return err
		}
	}
	return nil
}

func deleteVisible(ctx context.Context, t *trial) error {
	key, second := t.key("key"), []byte("second, and longer")
	if _, err := t.make(ctx, key, []byte("first")); err != nil {
		return err
	}
	if err := t.holds(ctx, key, []byte("first"), "a read does not give what was just written"); err != nil {
		return err
	}
	if err := t.remove(ctx, key); err != nil {
		return err
	}
	_, _, err := t.read(ctx, key, objstore.Whole, "")
	if err := refusedAs(err, objstore.ErrNotFound, "a deleted object can still be read"); err != nil {
		return err
	}
	if _, err := t.make(ctx, key, second); err != nil {
		return err
	}
	return t.holds(ctx, key, second, "a key that was deleted and created anew reads as it was")
}
