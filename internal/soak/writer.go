//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/segment"
)

// leaseTime of the writers: short, so that a stop outlasts it.
const leaseTime = 2 * time.Second

// writerFlags are those of every writer.
var writerFlags = []string{
	"--http", "127.0.0.1:0", "--lease-time", leaseTime.String(), "--shared-window", "150ms", "--segment-age", "1s",
	"--housekeeping", "1s", "--retention-every", "1s", "--min-free-disk", "1MiB", "--shutdown-timeout", "40s",
}

// writer is one writer's place: a disk and shards that outlive its processes.
type writer struct {
	fleet *fleet
	name  string

	mu     sync.Mutex
	disk   int // how many disks it had before this one
	shards []segment.Shard
	proc   *child.Process
	at     string // URL
}

func newWriter(f *fleet, name string, s ...segment.Shard) *writer {
	return &writer{fleet: f, name: name, shards: s}
}

func (w *writer) diskName() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%s%d", w.name, w.disk)
}

func (w *writer) dir() string { return filepath.Join(w.fleet.site.dir, "disk-"+w.diskName()) }

func (w *writer) url() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *writer) held() []segment.Shard {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.shards)
}

func (w *writer) owns(s segment.Shard) bool { return slices.Contains(w.held(), s) }

// give and take change what the next start owns.
func (w *writer) give(s segment.Shard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shards = append(w.shards, s)
	slices.Sort(w.shards)
}

func (w *writer) take(s segment.Shard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shards = slices.DeleteFunc(w.shards, func(x segment.Shard) bool { return x == s })
}

// running is the process that runs; nil: none.
func (w *writer) running() *child.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.proc
}

// start starts it on its disk. What faults of ours may cause at a start (a store that is
// away, a lease that lives) is tried again.
func (w *writer) start(ctx context.Context, steal bool) error {
	var last error
	return child.Poll(ctx, 2*startTimeout, "writer "+w.name+" starts", func() (bool, error) {
		err := w.startOnce(ctx, steal)
		var ended *child.EndedError
		if errors.As(err, &ended) && ended.Code() != exitFenced && ended.Code() != exitUnavailable {
			return false, child.FatalError{Cause: err}
		}
		last = err
		return err == nil, last
	})
}

// Exit codes of the command.
const (
	exitOK          = 0
	exitFailed      = 1
	exitDamage      = 3
	exitFenced      = 4
	exitUnavailable = 5
)

func (w *writer) startOnce(ctx context.Context, steal bool) error {
	shards := w.held()
	text := make([]string, len(shards))
	for i, s := range shards {
		text[i] = fmt.Sprint(s)
	}
	args := append([]string{"writer", "--dir", w.dir(), "--shards", strings.Join(text, ",")}, writerFlags...)
	if steal {
		args = append(args, "--steal")
	}
	out := &lines{}
	p, err := w.fleet.site.launch("writer-"+w.diskName(), out, w.fleet.site.with(args...)...)
	if err != nil {
		return err
	}
	url, err := waitListening(ctx, p, out)
	if err != nil {
		return errors.Join(err, p.Kill())
	}
	w.mu.Lock()
	w.proc, w.at = p, url
	w.mu.Unlock()
	w.fleet.serves(url, w.diskName(), shards)
	return nil
}

// gone forgets the process that ran.
func (w *writer) gone() *child.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.proc
	w.proc, w.at = nil, ""
	return p
}

func (w *writer) kill() error {
	if p := w.gone(); p != nil {
		return p.Kill()
	}
	return nil
}

// stop asks it to publish and end.
func (w *writer) stop() (code int, err error) {
	p := w.gone()
	if p == nil {
		return 0, nil
	}
	if code, err = p.Stop(); err == nil && code != exitOK {
		err = &child.EndedError{Process: p}
	}
	return code, err
}

// loseDisk deletes the disk; the next start has an empty one.
func (w *writer) loseDisk() error {
	err := os.RemoveAll(w.dir())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disk++
	return err
}
