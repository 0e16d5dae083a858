package peer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

var pebbleRecord = Peer{
	Name: "pebble record", Role: Rival, Module: "github.com/cockroachdb/pebble/v2",
	Note: "record.LogWriter alone, as pebble's write-ahead log uses it, with its own group commit; one growing file, preallocated as pebble does it, no rotation and no recycling; there is nothing to open",
	Open: openPebbleRecord, Replay: replayPebbleRecord, NoOpen: true,
}

// pebblePreallocate is what pebble gives its log for a memtable of 64 MiB.
const pebblePreallocate = 64 << 20 * 11 / 10

type recordLog struct {
	queue chan struct{} // a place in the writer's sync queue: it panics when that overflows
	mu    sync.Mutex    // the writer takes one record at a time
	w     *record.LogWriter
}

func recordFiles(dir string) ([]string, error) { return filepath.Glob(filepath.Join(dir, "*.rec")) }

func openPebbleRecord(dir string, _ Options) (Log, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	old, err := recordFiles(dir)
	if err != nil {
		return nil, err
	}
	f, err := vfs.Default.Create(filepath.Join(dir, fmt.Sprintf("%06d.rec", len(old)+1)), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	f = vfs.NewSyncingFile(f, vfs.SyncingFileOptions{PreallocateSize: pebblePreallocate})
	if err := syncDir(dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := &recordLog{queue: make(chan struct{}, record.SyncConcurrency-1)}
	l.w = record.NewLogWriter(f, 1, record.LogWriterConfig{
		QueueSemChan: l.queue, WriteWALSyncOffsets: func() bool { return false },
	})
	return l, nil
}

// Producer keeps one wait group and one error for all its records.
func (l *recordLog) Producer(int) func(rec []byte) error {
	var wg sync.WaitGroup
	var synced error
	return func(rec []byte) error {
		synced = nil
		wg.Add(1)
		l.queue <- struct{}{}
		l.mu.Lock()
		_, err := l.w.SyncRecord(rec, &wg, &synced)
		l.mu.Unlock()
		if err != nil {
			return err
		}
		wg.Wait()
		return synced
	}
}

func (l *recordLog) Close() error { return l.w.Close() }

func replayPebbleRecord(dir string, _ Options, sink Sink) error {
	files, err := recordFiles(dir)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	for _, name := range files {
		if err := replayRecordFile(name, &buf, sink); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func replayRecordFile(name string, buf *bytes.Buffer, sink Sink) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	r := record.NewReader(f, 1)
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) || record.IsInvalidRecord(err) { // the end of a log that was not closed
			return nil
		}
		if err != nil {
			return err
		}
		buf.Reset()
		if _, err := buf.ReadFrom(rec); err != nil {
			return err
		}
		if err := sink(buf.Bytes()); err != nil {
			return err
		}
	}
}
