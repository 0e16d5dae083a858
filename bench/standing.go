package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/bench/peer"
)

// fill appends numbered records until there are so many, with many producers, and
// closes the log.
func fill(p peer.Peer, t task) (s sample, err error) {
	l, err := p.Open(t.Dir, t.Options)
	if err != nil {
		return s, fmt.Errorf("open: %w", err)
	}
	begin := time.Now()
	var next atomic.Int64
	var running sync.WaitGroup
	failed := make(chan error, t.Producers)
	for n := range t.Producers {
		running.Go(func() { failed <- fillAs(newProducer(l, n, t.RecordBytes), &next, t.Records) })
	}
	running.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	s.Rows, s.Seconds = t.Records, time.Since(begin).Seconds()
	s.RowsPerSecond = float64(s.Rows) / s.Seconds
	return s, errors.Join(err, l.Close())
}

func fillAs(p *producer, next *atomic.Int64, records int64) error {
	for {
		n := next.Add(1)
		if n > records {
			return nil
		}
		binary.LittleEndian.PutUint64(p.rec, uint64(n))
		if err := p.send(p.rec); err != nil {
			return err
		}
	}
}

// measureOpen times the open for append of a log that was closed.
func measureOpen(p peer.Peer, t task) (s sample, err error) {
	if err := warm(t.Dir); err != nil {
		return s, err
	}
	begin := time.Now()
	l, err := p.Open(t.Dir, t.Options)
	if err != nil {
		return s, err
	}
	s.OpenMillis = float64(time.Since(begin).Nanoseconds()) / 1e6
	return s, l.Close()
}

// measureReplay times the way through all records, and holds the log to having each
// of them once.
func measureReplay(p peer.Peer, t task) (s sample, err error) {
	if err := warm(t.Dir); err != nil {
		return s, err
	}
	var sum uint64
	begin := time.Now()
	err = p.Replay(t.Dir, t.Options, func(rec []byte) error {
		if len(rec) != t.RecordBytes {
			return fmt.Errorf("record %d has %d bytes", s.Rows, len(rec))
		}
		s.Rows++
		sum += binary.LittleEndian.Uint64(rec)
		return nil
	})
	if err != nil {
		return s, err
	}
	s.Seconds = time.Since(begin).Seconds()
	want := uint64(t.Records)
	if s.Rows != t.Records || sum != want*(want+1)/2 {
		return s, fmt.Errorf("%d records came back, their numbers sum to %d; %d went in", s.Rows, sum, t.Records)
	}
	s.RowsPerSecond = float64(s.Rows) / s.Seconds
	s.ReplayMBps = float64(s.Rows) * float64(t.RecordBytes) / 1e6 / s.Seconds
	return s, nil
}

// warm reads all files once, so that the page cache has them.
func warm(dir string) error {
	buf := make([]byte, 1<<20)
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		// The plain writer keeps io.CopyBuffer from splicing past the buffer.
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf)
		return errors.Join(err, f.Close())
	})
}
