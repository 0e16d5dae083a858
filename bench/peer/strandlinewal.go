package peer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

const strandlineModule = "github.com/strandline/strandline"

var strandlineWAL = Peer{
	Name: "strandline wal", Role: Ours, Module: strandlineModule,
	Note: "localtier/wal: segments, CRC-32C, group commit. It is measured in steady state, with spare files to write over; a segment that is sealed meanwhile counts as published at once, and its file is one again",
	Open: openWAL, Replay: replayWAL, SpareDir: func(dir string) string { return dir },
}

// walLog reclaims what is sealed, as the shard log does once it is published.
type walLog struct {
	log    *wal.Log
	sealed chan wal.SealedSegment
	end    chan struct{}
	done   sync.WaitGroup
	mu     sync.Mutex
	err    error // mu: of the reclaiming
}

func walConfig(o Options) wal.Config {
	return wal.Config{
		SegmentBytes: int64(o.SegmentBytes), SegmentAge: 24 * time.Hour, SpareFiles: spareFiles(o),
		NextStart: func(*segment.Start) error { return nil },
	}
}

// spareFiles is the log's default, or what was lent, so that nothing of it is removed.
func spareFiles(o Options) int { return max(o.Spares, wal.DefaultSpareFiles) }

func openWAL(dir string, o Options) (Log, error) {
	l := &walLog{sealed: make(chan wal.SealedSegment, 64), end: make(chan struct{})}
	cfg := walConfig(o)
	if !o.Keep {
		cfg.OnSealed = func(s wal.SealedSegment) {
			select {
			case l.sealed <- s:
			default: // the next one takes this one along
			}
		}
	}
	ctx := context.Background()
	var err error
	if l.log, err = wal.Open(ctx, dir, cfg, nil); err != nil {
		return nil, err
	}
	if l.log.State().Segment == 0 {
		start := segment.Start{Chain: segment.Chain{Epoch: 1}, ID: 1, Base: 1, Term: 1}
		if err := l.log.StartSegment(ctx, start); err != nil {
			return nil, errors.Join(err, l.log.Close())
		}
	}
	l.done.Go(l.reclaim)
	return l, nil
}

func (l *walLog) reclaim() {
	for {
		select {
		case s := <-l.sealed:
			err := l.log.Checkpoint(context.Background(), s.End())
			if err == nil {
				_, err = l.log.Housekeep(context.Background(), wal.NoFloor)
			}
			l.mu.Lock()
			l.err = errors.Join(l.err, err)
			l.mu.Unlock()
		case <-l.end:
			return
		}
	}
}

// Producer writes a stream of its own, as most clients do.
func (l *walLog) Producer(n int) func(rec []byte) error {
	ctx := context.Background()
	b := &segment.Batch{Stream: streamOf(n), Rows: make([]segment.Row, 1)}
	return func(rec []byte) error {
		b.Rows[0] = segment.Row{Time: time.Now().UnixNano(), Payload: rec}
		ticket, err := l.log.AppendBatch(ctx, b)
		if err == nil {
			_, err = ticket.Wait(ctx)
		}
		return err
	}
}

func (l *walLog) Close() error {
	close(l.end)
	l.done.Wait()
	return errors.Join(l.err, l.log.Close())
}

func replayWAL(dir string, o Options, sink Sink) error {
	var row segment.Row
	_, err := wal.OpenReadOnly(context.Background(), dir, walConfig(o), func(r wal.Replayed) error {
		if r.Frame.Kind != segment.KindBatch {
			return nil
		}
		rows := r.Frame.Rows()
		for rows.Next(&row) {
			if err := sink(row.Payload); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	return err
}
