package storebench

import (
	"context"
	"errors"

	"github.com/strandline/strandline/objstore"
)

// Contender is one client of the store. Each function is one operation as a caller would
// want it; keys are those of the store's URL.
type Contender struct {
	Name     string
	Requests func() int64 // sent so far
	Close    func() error

	Put     func(ctx context.Context, key string, body []byte) error
	Read    func(ctx context.Context, key string, off int64, into []byte) error
	Footer  func(ctx context.Context, key string, n int64) ([]byte, error)
	Publish func(ctx context.Context, key string, chunk []byte, chunks int) error // streams chunk so many times
	Delete  func(ctx context.Context, keys []string) error
	Copy    func(ctx context.Context, key string, src objstore.CopySource) error
}

// The names of contenders.
const (
	NameOurs     = "strandline"
	NameBare     = "bare"
	NameDefaults = "bare, defaults"
)

// ours is the Store as every other package uses it.
func ours(s *objstore.Store) Contender {
	write := func(ctx context.Context, key string, fill func(*objstore.Writer) error) error {
		w := s.NewWriter(ctx, key, objstore.UploadOptions{})
		if err := fill(w); err != nil {
			return errors.Join(err, w.Abort())
		}
		_, err := w.Commit()
		return err
	}
	return Contender{
		Name:     NameOurs,
		Requests: func() int64 { return s.Counters().Total() },
		Close:    func() error { return nil }, // the caller's
		Put: func(ctx context.Context, key string, body []byte) error {
			_, err := s.PutOnce(ctx, key, body, nil)
			return err
		},
		Read: func(ctx context.Context, key string, off int64, into []byte) error {
			_, err := s.ReadInto(ctx, key, off, into)
			return err
		},
		Footer: func(ctx context.Context, key string, n int64) ([]byte, error) {
			b, _, err := s.ReadSuffix(ctx, key, n)
			return b, err
		},
		Publish: func(ctx context.Context, key string, chunk []byte, chunks int) error {
			return write(ctx, key, func(w *objstore.Writer) error {
				for range chunks {
					if _, err := w.Write(chunk); err != nil {
						return err
					}
				}
				return nil
			})
		},
		Delete: func(ctx context.Context, keys []string) error {
			fates, err := s.Delete(ctx, keys)
			return errors.Join(err, failures(fates))
		},
		Copy: func(ctx context.Context, key string, src objstore.CopySource) error {
			return write(ctx, key, func(w *objstore.Writer) error { return w.CopyRange(src) })
		},
	}
}
