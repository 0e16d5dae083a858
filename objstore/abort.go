package objstore

import (
	"context"
	"errors"
)

// Abort drops an unfinished upload with its parts. One that is absent is fine:
// aborting is idempotent, and an answer may have been lost. A part that was in
// flight may land after it, so that who must know none is left lists again.
func (s *Store) Abort(ctx context.Context, key, uploadID string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	err := s.retry(ctx, OpAbort, key, func(ctx context.Context) error {
		return s.driver.Abort(ctx, key, uploadID)
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
