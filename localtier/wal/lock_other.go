//go:build !unix

package wal

import (
	"errors"
	"fmt"
	"io"
)

// lockFile refuses: without a lock that dies with its holder two processes could
// write one log.
func lockFile(name string) (io.Closer, error) {
	return nil, fmt.Errorf("lock %s: %w on this platform", name, errors.ErrUnsupported)
}

// Held cannot be told here.
func Held(name string) (bool, error) {
	return false, fmt.Errorf("lock %s: %w on this platform", name, errors.ErrUnsupported)
}
