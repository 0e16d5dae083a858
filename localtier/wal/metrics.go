package wal

import (
	"sync/atomic"
	"time"
)

// metrics counts what the log does.
type metrics struct {
	frames, rows, bytes, refused atomic.Int64
	syncs, syncNanos, syncMax    atomic.Int64
	segments, seals              atomic.Int64
	rollbacks, poisonings        atomic.Int64
	waits, waitsFilled           atomic.Int64
	indexWrites, indexFailures   atomic.Int64
	removed, adopted, recycled   atomic.Int64
	recoveryNanos                atomic.Int64
	syncBuckets                  [len(syncBounds) + 1]atomic.Int64
}

// syncBounds reach from a disk with a protected write cache to one that is in trouble.
var syncBounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, time.Second, 5 * time.Second,
}

// SyncBounds are the upper bounds of Metrics.SyncBuckets.
func SyncBounds() []time.Duration { return syncBounds[:] }

// Metrics is a snapshot of the log's counters since it was opened.
type Metrics struct {
	Frames, Rows, Bytes int64         // appended
	Refused             int64         // appends that met ErrBackpressure
	Syncs               int64         // fdatasync calls
	SyncTime, SyncMax   time.Duration // their sum and the longest
	SyncBuckets         []int64       // calls up to each of SyncBounds; the last is of longer ones
	Segments, Seals     int64         // begun, sealed
	Waits, WaitsFilled  int64         // for producers just released, and how many of them came in time
	Rollbacks           int64         // writes taken back
	Poisonings          int64         // 0 or 1
	IndexWrites         int64
	IndexFailures       int64
	Removed             int64 // segments unlinked by housekeeping or reclamation
	Adopted             int64 // older segments taken in by Adopt
	Recycled            int64 // segment files put aside to be written over
	SpareBytes          int64 // in such files now
	Unflushed           int64 // bytes that wait for the disk
	DiskBytes           int64 // durable bytes of the segments that stand
	SegmentCount        int64
	Recovery            time.Duration
	Checkpoint          Offset // the last one; zero if there is none
}

func (m *metrics) appended(rows int, n int64) {
	m.frames.Add(1)
	m.rows.Add(int64(rows))
	m.bytes.Add(n)
}

func (m *metrics) synced(d time.Duration) {
	m.syncs.Add(1)
	m.syncNanos.Add(int64(d))
	i := 0
	for i < len(syncBounds) && d > syncBounds[i] {
		i++
	}
	m.syncBuckets[i].Add(1)
	for {
		old := m.syncMax.Load()
		if int64(d) <= old || m.syncMax.CompareAndSwap(old, int64(d)) {
			return
		}
	}
}

func (m *metrics) waited(filled bool) {
	m.waits.Add(1)
	if filled {
		m.waitsFilled.Add(1)
	}
}

func (m *metrics) failed(final bool) {
	if final {
		m.poisonings.Add(1)
	} else {
		m.rollbacks.Add(1)
	}
}

// Metrics is a snapshot.
func (l *Log) Metrics() Metrics {
	m := &l.metrics
	out := Metrics{
		Frames: m.frames.Load(), Rows: m.rows.Load(), Bytes: m.bytes.Load(), Refused: m.refused.Load(),
		Syncs: m.syncs.Load(), SyncTime: time.Duration(m.syncNanos.Load()), SyncMax: time.Duration(m.syncMax.Load()),
		Segments: m.segments.Load(), Seals: m.seals.Load(),
		Waits: m.waits.Load(), WaitsFilled: m.waitsFilled.Load(),
		Rollbacks: m.rollbacks.Load(), Poisonings: m.poisonings.Load(),
		IndexWrites: m.indexWrites.Load(), IndexFailures: m.indexFailures.Load(),
		Removed: m.removed.Load(), Adopted: m.adopted.Load(), Recycled: m.recycled.Load(), Recovery: time.Duration(m.recoveryNanos.Load()),
	}
	out.SyncBuckets = make([]int64, len(m.syncBuckets))
	for i := range m.syncBuckets {
		out.SyncBuckets[i] = m.syncBuckets[i].Load()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hasCheck {
		out.Checkpoint = l.checkpoint
	}
	out.Unflushed = l.unflushed
	out.SegmentCount = int64(len(l.sealed))
	for _, s := range l.sealed {
		out.DiskBytes += s.Bytes
	}
	for _, s := range l.spares {
		out.SpareBytes += s.size
	}
	if l.durable.open {
		out.SegmentCount++
		out.DiskBytes += l.durable.end
	}
	return out
}
