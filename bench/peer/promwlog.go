package peer

import (
	"errors"
	"log/slog"
	"os"

	"github.com/prometheus/prometheus/tsdb/wlog"
	"github.com/prometheus/prometheus/util/compression"
)

var promWlog = Peer{
	Name: "prometheus wlog", Role: Rival, Module: "github.com/prometheus/prometheus",
	Note: "behind the committer, uncompressed. Its own rotation syncs the finished segment in the background, " +
		"so an acknowledgement right after it is not durable: the adapter rotates with NextSegmentSync and syncs the directory",
	Open: openProm, Replay: replayProm,
}

// promPage is what segment sizes are multiples of.
const promPage = 32 << 10

type promLog struct {
	dir     string
	wlog    *wlog.WL
	limit   int
	written int // in the open segment
}

func openProm(dir string, o Options) (Log, error) {
	// Twice the size, so that it never rotates by itself.
	size := (2*o.SegmentBytes + promPage - 1) / promPage * promPage
	w, err := wlog.NewSize(slog.New(slog.DiscardHandler), nil, dir, size, compression.None)
	if err != nil {
		return nil, err
	}
	l := &promLog{dir: dir, wlog: w, limit: o.SegmentBytes}
	if err := syncDir(dir); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return commitFor(l), nil
}

func (l *promLog) appendBatch(recs [][]byte) error {
	n := 0
	for _, rec := range recs {
		n += len(rec)
	}
	if l.written > 0 && l.written+n > l.limit {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	l.written += n
	if err := l.wlog.Log(recs...); err != nil {
		return err
	}
	return l.wlog.Sync()
}

func (l *promLog) rotate() error {
	if _, err := l.wlog.NextSegmentSync(); err != nil {
		return err
	}
	l.written = 0
	return syncDir(l.dir)
}

func (l *promLog) Close() error { return l.wlog.Close() }

func replayProm(dir string, _ Options, sink Sink) error {
	segments, err := wlog.NewSegmentsReader(dir)
	if err != nil {
		return err
	}
	r := wlog.NewReader(segments)
	for r.Next() && err == nil {
		err = sink(r.Record())
	}
	return errors.Join(err, r.Err(), segments.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
