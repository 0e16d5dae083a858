package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// unreadLooks: that reads of an object do not complete is the weakest ground there is.
const unreadLooks = 3

// ErrNotSame: the looks at an object did not all end in the same way.
var ErrNotSame = errors.New("check: reads do not always end in the same way")

// ProveUnreadable is ProveLoss on an operator's word that the reads of these bytes fail for
// good: one that is cut short counts as lost bytes if it ends so at each of three looks at a
// bucket, while a HEAD of the object and a read of the bucket's stamp succeed.
func ProveUnreadable(ctx context.Context, cat LossCatalog, classes objstore.Classes, key, stream string) (*Loss, error) {
	return proveLoss(ctx, cat, classes, &lossProof{
		key: key, loss: &Loss{Key: key, Stream: stream, Spans: []LostSpan{}}, unread: true, hows: map[string]string{},
	})
}

// cutShort: the store answered, and did not give the bytes. A store that is denied,
// overloaded or out of reach has said nothing of them.
func cutShort(err error) bool {
	return errors.Is(err, objstore.ErrShort) && !errors.Is(err, objstore.ErrUnavailable) && !errors.Is(err, objstore.ErrDenied) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// wayOf is the same for two reads that ended in the same way.
func wayOf(err error) string {
	var e *objstore.Error
	if errors.As(err, &e) {
		return e.Kind.Error()
	}
	return err.Error()
}

func (p *lossProof) looks() int {
	if p.unread {
		return unreadLooks
	}
	return lossLooks
}

// same holds a look against the first one at its bucket, and asks the bucket for what
// shows that it is this object which cannot be read, and not the bucket.
func (p *lossProof) same(ctx context.Context, store *objstore.Store, ref *catalog.LiveRef, how string) error {
	id := fmt.Sprintf("%s %s", store.Name(), ref.FirstPos())
	if first, ok := p.hows[id]; ok && first != how {
		return fmt.Errorf("%w: %s, before: %s", ErrNotSame, how, first)
	}
	p.hows[id] = how
	if _, _, err := store.ReadAll(ctx, segment.StampKey(), maxRecord); err != nil {
		return fmt.Errorf("read the bucket's stamp: %w", err)
	}
	if _, err := store.Head(ctx, p.key); err != nil && !errors.Is(err, objstore.ErrNotFound) && !unsound(err) {
		return fmt.Errorf("look for %s: %w", p.key, err)
	}
	return nil
}

// hint says of a refusal what an operator can do about it.
func (p *lossProof) hint(ctx context.Context, store *objstore.Store, err error) string {
	switch {
	case !p.unread && cutShort(err):
		return "; if its reads are cut short again and again while the bucket's other objects are read, accept-loss --unreadable takes your word for it"
	case p.onlyThis(ctx, store, err):
		return "; the bucket's other objects are read, so this may not pass by itself. A store that answers with a fault may have the bytes: no word of yours gives them up while it stands. " +
			"Heal the object with the store's own tools, or restore it under its key from a backup; only if it is known to be gone for good, delete it with those tools in every bucket of its class: " +
			"accept-loss finds it gone then"
	}
	return ""
}

// onlyThis says whether a store that has a fault for an object answers for its stamp.
func (p *lossProof) onlyThis(ctx context.Context, store *objstore.Store, err error) bool {
	if !errors.Is(err, objstore.ErrUnavailable) || ctx.Err() != nil {
		return false
	}
	_, _, err = store.ReadAll(ctx, segment.StampKey(), maxRecord)
	return err == nil
}
