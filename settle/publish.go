package settle

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// errJudged: the upload is gone and no object stands at the key.
var errJudged = errors.New("the orphan judge took this job's upload: it gives up")

// durable is what stands at the job's key.
type durable struct {
	footer *segment.Footer
	size   int64
	ours   bool
	failed []failure // members that our own assembly left out
}

// publish is steps 3 and 4: create the output once. Whatever stands at the key
// afterwards is immutable, so it may be described, whoever made it.
func (m *mover) publish(ctx context.Context, a *announced, o *outcome) (*durable, error) {
	for try := 1; ; try++ {
		b, err := m.assemble(ctx, a)
		if err != nil {
			return nil, err
		}
		info, err := b.w.Commit()
		through, copied := b.w.Moved()
		o.through, o.serverSide = o.through+through, o.serverSide+copied
		// A crash here leaves the object under its intent: the re-run derives the same
		// key and describes it, or the judge deletes it.
		switch {
		case err == nil:
			return &durable{b.footer, info.Size, true, b.failed}, nil
		case errors.Is(err, objstore.ErrExists):
			return m.winner(ctx, a, b, err)
		case errors.Is(err, objstore.ErrAmbiguous):
			// Mine or another's, if it stands it is durable; if not, nothing is known and
			// nothing is cleaned up (K13).
			return m.winner(ctx, a, b, err)
		case errors.Is(err, objstore.ErrConflict) && try < maxTries:
			continue // 409 is not "exists" (K32): a new upload
		case errors.Is(err, objstore.ErrNotFound):
			return nil, fmt.Errorf("%w: %w", errJudged, err)
		}
		return nil, fmt.Errorf("publish %s: %w", a.key, err)
	}
}

// winner reads the tail of the object that stands at the key instead of ours.
func (m *mover) winner(ctx context.Context, a *announced, b *assembled, cause error) (*durable, error) {
	f, info, err := readTail(ctx, m.dest, a.key)
	if err != nil {
		err = fmt.Errorf("publish %s: %w; reading what stands there: %w", a.key, cause, err)
		m.note(ctx, a.key, err)
		return nil, err
	}
	if f.Kind != a.job.kind {
		err := &segment.CorruptionError{File: a.key, Reason: fmt.Sprintf("a %s object stands where a %s was to be", f.Kind, a.job.kind)}
		m.note(ctx, a.key, err)
		return nil, err
	}
	return &durable{f, info.Size, false, b.failed}, nil
}

// readTail reads an object's footer, and what the store says of the object.
func readTail(ctx context.Context, store *objstore.Store, key string) (footer *segment.Footer, info objstore.Info, err error) {
	footer, err = segment.ReadFooter(func(n int64) ([]byte, int64, error) {
		tail, got, err := store.ReadSuffix(ctx, key, n)
		if err == nil && info.ETag != "" && got.ETag != info.ETag {
			err = &objstore.Error{Op: "get", Key: key, Kind: objstore.ErrPrecondition, Err: errors.New("the object changed while it was read")}
		}
		info = got
		return tail, got.Size, err
	})
	if err != nil {
		return nil, info, segment.InFile(err, key, 0)
	}
	return footer, info, nil
}
