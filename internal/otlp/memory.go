package otlp

import (
	"errors"

	"golang.org/x/sync/semaphore"
)

const (
	// MaxBodyBytes of a request, after decompression. Senders' batches are far below it: a
	// Collector's receiver takes 20 MiB over HTTP and 4 MiB over gRPC unless told otherwise.
	MaxBodyBytes = 16 << 20
	// MaxRecords of a request.
	MaxRecords = 1 << 17
	// MaxRowsBytes of a request's rows: each repeats its record's resource and scope, so a
	// small request of many records under a large resource would fill a disk.
	MaxRowsBytes = 64 << 20
	// MaxMemory is what all requests under way may take, by what the survey says.
	MaxMemory = 512 << 20
	// elementBytes is about what a message takes decoded, beside its text.
	elementBytes = 256
)

var errBusy = errors.New("too many requests under way")

// share is what one request holds of MaxMemory.
type share struct {
	all  *semaphore.Weighted
	held int64
}

// grow takes more, or says that there is none.
func (s *share) grow(n int64) error {
	if n > MaxMemory-s.held {
		return tooLarge("the request would take more than %d bytes decoded; send fewer records at once", MaxMemory)
	}
	if !s.all.TryAcquire(n) {
		return errBusy
	}
	s.held += n
	return nil
}

func (s *share) release() {
	s.all.Release(s.held)
	s.held = 0
}
