package localtier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// narrowFS is a disk that has room for so many bytes more.
type narrowFS struct {
	wal.FS
	left    atomic.Int64
	refused atomic.Int64
}

func (f *narrowFS) Create(name string) (wal.File, error) {
	file, err := f.FS.Create(name)
	return &narrowFile{file, f}, err
}

func (f *narrowFS) OpenWrite(name string) (wal.File, error) {
	file, err := f.FS.OpenWrite(name)
	return &narrowFile{file, f}, err
}

type narrowFile struct {
	wal.File
	fs *narrowFS
}

func (f *narrowFile) WriteAt(p []byte, off int64) (int, error) {
	if f.fs.left.Add(-int64(len(p))) < 0 {
		f.fs.refused.Add(1)
		return 0, syscall.ENOSPC
	}
	return f.File.WriteAt(p, off)
}

// TestHalfOfAnAppend: an append of several frames goes to the disk in several writes, and the
// disk fills between them. Its caller is told how many of its rows are durable, and these are
// there afterwards, once; nothing of the others.
func TestHalfOfAnAppend(t *testing.T) {
	big := make([]segment.Row, 3) // a frame each, and a segment each
	for i := range big {
		big[i] = segment.Row{Time: 1, Payload: bytes.Repeat([]byte{'a' + byte(i)}, 10<<20)}
	}
	for name, c := range map[string]struct {
		room    int64
		durable int
	}{
		"no frame":   {5 << 20, 0},
		"one frame":  {15 << 20, 1},
		"two frames": {25 << 20, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			disk := &narrowFS{FS: osFS()}
			disk.left.Store(1 << 40)
			clock := &handClock{t: time.Now()}
			a := w.open("a", func(o *Options) {
				o.Now = clock.now
				o.Config.WAL.FS, o.Config.WAL.SegmentBytes = disk, segment.MinSegmentBytes
				o.Config.MaxUnpublished = 4 * segment.MinSegmentBytes
			})
			disk.left.Store(c.room)
			_, err := a.Append(t.Context(), "s", big, AckLocal)
			if !errors.Is(err, ErrDiskFull) || !errors.Is(err, ErrBackpressure) || disk.refused.Load() == 0 {
				t.Fatalf("want a full disk, got %v", err)
			}
			var half *PartialError
			switch {
			case errors.As(err, &half) != (c.durable > 0), errors.Is(err, ErrPartial) != (c.durable > 0):
				t.Fatalf("%d frames are durable: %v", c.durable, err)
			case c.durable > 0 && (half.Durable != c.durable || half.Rows != 3 || half.First != 1 || half.Last != segment.Seq(c.durable) || half.Epoch != 1):
				t.Fatalf("%+v", half)
			case c.durable > 0 && !strings.Contains(err.Error(), "append the rest alone"):
				t.Errorf("nobody learns what to do: %v", err)
			}
			disk.left.Store(1 << 40)
			clock.advance(2 * stallPause)
			if _, err := a.Append(t.Context(), "s", big[c.durable:], AckLocal); err != nil {
				t.Fatal(err)
			}
			w.mustClose(a)
			got := w.stored("s")
			if len(got) != 3 {
				t.Fatalf("%d rows, 3 were appended", len(got))
			}
			for i := range got {
				if got[i] != string(big[i].Payload) {
					t.Errorf("row %d is another", i)
				}
			}
		})
	}
}

// TestHalfOfAnAppendInLine: the log refuses a later frame while the earlier ones wait for the
// disk, which takes them then; or the caller goes away before it did.
func TestHalfOfAnAppendInLine(t *testing.T) {
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprintf("gone %t", gone), func(t *testing.T) {
			w := newWorld(t, 1)
			disk := &sickFS{FS: osFS(), syncing: make(chan struct{}), goOn: make(chan struct{})}
			a := w.open("a", func(o *Options) { o.Config.WAL.FS = disk })
			s := a.shards[0]
			disk.stall.Store(true)
			frames := [][]segment.Row{{{Time: 1}, {Time: 2}}, {{Time: 3}}, {{Time: 4}}}
			first, queued, err := s.enqueue(t.Context(), Producer{}, "s", frames[:2], 200)
			if err != nil {
				t.Fatal(err)
			}
			<-disk.syncing
			disk.stall.Store(false)
			refused := &BackpressureError{Chain: s.chain, Full: true}
			if gone {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := s.partly(ctx, first, frames, queued, refused); !errors.Is(err, context.Canceled) || errors.Is(err, ErrBackpressure) {
					t.Errorf("what became of the first rows is not known: %v", err)
				}
			}
			disk.goOn <- struct{}{}
			var half *PartialError
			if err := s.partly(t.Context(), first, frames, queued, refused); !errors.As(err, &half) || !errors.Is(err, ErrDiskFull) || half.Durable != 3 || half.Rows != 4 || half.Last != 3 {
				t.Errorf("three rows of four are durable: %v", err)
			}
			if err := s.partly(t.Context(), 0, frames, tickets{}, refused); !errors.Is(err, refused) || errors.As(err, &half) {
				t.Errorf("no frame was queued: %v", err)
			}
			poisoned := s.poisoned(wal.ErrPoisoned)
			if err := s.partly(t.Context(), first, frames, queued, poisoned); !errors.Is(err, wal.ErrPoisoned) || errors.Is(err, ErrPartial) {
				t.Errorf("what a restart will find of the rest is not known: %v", err)
			}
			w.mustClose(a)
			if n := len(w.stored("s")); n != 3 {
				t.Errorf("%d rows are there", n)
			}
		})
	}
}
