package peer

import (
	"context"
	"errors"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// A log in steady state writes over files that it has given up. These bring a new one
// there: segments are filled with zeros, given up, and kept as spare files.

// use fills segments and gives them up.
func (l *walLog) use(o Options) error {
	ctx := context.Background()
	b := &segment.Batch{Stream: "before", Rows: []segment.Row{{Payload: make([]byte, usedRow)}}}
	for range o.Used * o.SegmentBytes / usedRow {
		if _, err := l.log.AppendBatch(ctx, b); err != nil {
			return err
		}
		if err := l.log.Sync(ctx); err != nil {
			return err
		}
	}
	if _, err := l.log.Seal(ctx); err != nil {
		return err
	}
	sealed := l.log.Sealed()
	return giveUp(l.log, sealed[len(sealed)-1])
}

// usedRow is a row of the segments that are filled to be given up.
const usedRow = 1 << 20

func giveUp(log *wal.Log, through wal.SealedSegment) error {
	if err := log.Checkpoint(context.Background(), through.End()); err != nil {
		return err
	}
	_, err := log.Housekeep(context.Background(), wal.NoFloor)
	return err
}

// useShard fills segments, has them published, and gives them up. Housekeeping is
// periodic in a writer; here the log is asked for it between two opens.
func useShard(dir string, o Options) error {
	ctx := context.Background()
	l, err := openShardLog(dir, o)
	if err != nil {
		return err
	}
	rows := []segment.Row{{Payload: make([]byte, usedRow)}}
	for range o.Used * o.SegmentBytes / usedRow {
		if _, err = l.writer.Append(ctx, "before", rows, localtier.AckLocal); err != nil {
			break
		}
	}
	if err = errors.Join(err, l.writer.Close(ctx), l.catalog.Close()); err != nil {
		return err
	}
	log, err := wal.Open(ctx, chainDir(dir), walConfig(o), nil)
	if err != nil {
		return err
	}
	_, err = log.Housekeep(ctx, wal.NoFloor)
	return errors.Join(err, log.Close())
}
