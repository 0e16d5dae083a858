package settle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

var (
	// errKeyRefused: a ref names the key, or it is condemned, burned, or another
	// holder's. The job derives the next revision.
	errKeyRefused = errors.New("key refused")
	// errDeadline: half the orphan grace has passed since the job announced itself.
	errDeadline = errors.New("the job's deadline has passed: it gives up, and starts anew later; if it never gets done, raise --budget-bytes, or the orphan grace: half of it is the deadline")
)

// announced is a job whose intent stands under its nonce.
type announced struct {
	job      *job
	key      string
	revision uint32
	nonce    string
	deadline time.Time // by the process's clock

	mu   sync.Mutex
	gone []string // uploads that were completed or aborted; mu
}

// announce is step 1: the output's intent, before anything exists. Its holder is
// the duty on the chain, so a re-run after a crash takes the intent over.
func (m *mover) announce(ctx context.Context, j *job, revision uint32) (*announced, error) {
	if err := m.lease.renew(ctx); err != nil {
		return nil, err
	}
	a := &announced{job: j, key: j.key(revision), revision: revision, nonce: m.NewNonce()}
	// From before the call: the catalog counts from later on.
	a.deadline = m.Clock().Add(m.deadline)
	err := again(ctx, func() error {
		_, err := m.Catalog.Announce(ctx, catalog.Announce{
			Key: a.key, Class: segment.ClassStandard, Holder: j.holder, Nonce: a.nonce, Deadline: m.deadline,
		})
		return err
	})
	var conflict *catalog.ConflictError
	switch {
	case errors.As(err, &conflict) && conflict.Guard == "lease":
		return nil, fmt.Errorf("%w: %w", errLeaseLost, err)
	case errors.Is(err, catalog.ErrConflict):
		return nil, fmt.Errorf("%w: %w", errKeyRefused, err)
	case err != nil:
		return nil, fmt.Errorf("announce %s: %w", a.key, err)
	}
	// A crash here leaves an intent and no object: the judge relieves it.
	return a, nil
}

// alive says whether the job may go on, and above all send a completing request.
func (a *announced) alive(now time.Time) error {
	if now.Before(a.deadline) {
		return nil
	}
	return fmt.Errorf("%s: %w", a.key, errDeadline)
}

// upload are the hooks that keep the intent's upload ids (K36: what is not
// recorded cannot be aborted).
func (m *mover) upload(ctx context.Context, a *announced) objstore.UploadOptions {
	return objstore.UploadOptions{
		OnCreate: func(id string) error {
			return again(ctx, func() error { return m.Catalog.AddUpload(ctx, a.key, a.nonce, id) })
		},
		OnDone: func(id string) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.gone = append(a.gone, id)
		},
		BeforeComplete: func(context.Context) error { return a.alive(m.Clock()) },
	}
}

// uploadsGone are the uploads that need no judge any more.
func (a *announced) uploadsGone() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.gone...)
}

// drop takes finished uploads off the intent of a job that does not commit. Best
// effort: what stays recorded is aborted once more by the judge.
func (m *mover) drop(ctx context.Context, a *announced) {
	for _, id := range a.uploadsGone() {
		if ctx.Err() != nil {
			return
		}
		if err := m.Catalog.DropUpload(ctx, a.key, a.nonce, id); err != nil {
			m.Logger.Debug("an upload stays on its intent for the judge", "key", a.key, "upload", id, "error", err)
		}
	}
}
