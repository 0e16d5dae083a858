package instance

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

const (
	// BlockBytes is what is kept, verified and dropped as one. Reading 64 KiB of a block
	// costs a checksum of 1 MiB (about 0.1 ms) and less than a request to a store does;
	// a cold read's 8 MiB are nine files, and 10 GiB ten thousand.
	BlockBytes = 1 << 20
	// fillBlocks bounds the run of one GET: a cold read's range of 8 MiB touches nine
	// blocks, and has to be one.
	fillBlocks = 16
	// fillBytes bounds all fills in memory.
	fillBytes = 128 << 20
	// leastWeight is what a block counts at least, so that small ones, too, bound the index.
	leastWeight = 64 << 10
	// diskUnit is what file systems allocate.
	diskUnit = 4 << 10

	// DefaultBytes of a cache.
	DefaultBytes = 10 << 30
	// LeastBytes holds the headroom and a few runs.
	LeastBytes = 64 << 20
	// DefaultMaxAge bounds how long a block outlives a delete that nobody told us of.
	DefaultMaxAge = time.Hour

	storeTimeout  = 30 * time.Second // of a GET that fills
	deleteTimeout = 15 * time.Second // of deletes: clients wait 20 s
)

// Config says where the files go and how many. Zero fields take the defaults above.
type Config struct {
	Dir    string
	Bytes  int64 // of all files, also while they are written
	MaxAge time.Duration
	// Keys says which keys may be read and deleted here; nil: all. What is not cached is none
	// of this package's business, whoever asks.
	Keys func(key string) bool
	// Guard wraps a route with authentication: access.Read of ranges and figures, access.Admin
	// of deletes; nil: whoever reaches the instance may do all of it.
	Guard func(scope string, next http.Handler) http.Handler

	Clock  func() time.Time // wall time: it is written into files
	Logger *slog.Logger

	boot func() string // the machine's run; tests
}

func (c Config) withDefaults() Config {
	if c.Bytes == 0 {
		c.Bytes = DefaultBytes
	}
	if c.MaxAge == 0 {
		c.MaxAge = DefaultMaxAge
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Guard == nil {
		c.Guard = func(_ string, next http.Handler) http.Handler { return next }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.boot == nil {
		c.boot = bootID
	}
	return c
}

// Validate reports every fault.
func (c Config) Validate() error {
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("no directory: give --cache-dir"))
	}
	if c.Bytes != 0 && c.Bytes < LeastBytes {
		errs = append(errs, fmt.Errorf("a cache of %d bytes: give %d or more", c.Bytes, LeastBytes))
	}
	if c.MaxAge < 0 {
		errs = append(errs, fmt.Errorf("a max-age of %v: give a positive one", c.MaxAge))
	}
	return errors.Join(errs...)
}
