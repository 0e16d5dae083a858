package drive

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// retained is what the gc drive read back.
type retained struct {
	acked     []event
	ack       segment.Seq // of the consumer, about three quarters
	watermark segment.Seq // committed by the owner's run
	before    int         // segment files
	after     int
	base      segment.Seq // the first seq that the directory has, by a look from outside
	rows      []event     // above the watermark, at the owner
	below     error       // of a read below it

	restarted []event // the same, after kill and restart
	belowThen error
	cursor    segment.Seq
	next      segment.Seq // what the first append after the restart got
}

// runGC: append many small segments, acknowledge three quarters, let retention run at the
// owner, kill it and restart it.
func runGC(ctx context.Context, o *Options, s *site) *Report {
	seen, err := observeGC(ctx, o, s)
	return &Report{
		Figures: []Figure{
			{"events", int64(len(seen.acked))},
			{"watermark", int64(seen.watermark)},
			{"segments_before", int64(seen.before)},
			{"segments_after", int64(seen.after)},
		},
		Claims: seen.judge(), Stopped: err,
	}
}

func observeGC(ctx context.Context, o *Options, s *site) (seen retained, err error) {
	r, err := s.start(ctx, "0", false, 0)
	if err != nil {
		return seen, err
	}
	if seen.acked, seen.ack, err = s.consume(ctx, r, o, executions(1, 2)); err != nil {
		return seen, err
	}
	if seen.before, err = countSegments(r.shardDir(0)); err != nil {
		return seen, err
	}
	for _, step := range []func() error{
		func() error { return seen.retain(ctx, r) },
		func() error { return s.at(ctx, "retained", s) },
		func() error { return seen.read(ctx, r) },
		func() error { return r.kill(ctx) },
		func() error { return s.at(ctx, "killed", s) },
		func() error { return seen.restart(ctx, s, o.Consumer) },
	} {
		if err := step(); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// consume appends o.Events in small segments, acknowledges three quarters, publishes
// that, and sets the policy.
func (s *site) consume(ctx context.Context, r *replica, o *Options, streams []string) (acked []event, ack segment.Seq, err error) {
	var bytes int64
	for _, e := range makeEvents(o.Events, streams) {
		one, err := r.append(ctx, []event{e})
		if err != nil {
			return acked, 0, err
		}
		acked = append(acked, one...)
		if bytes += int64(len(e.Payload)); bytes >= o.SegmentBytes {
			bytes = 0
			if err := r.Flush(ctx); err != nil {
				return acked, 0, fmt.Errorf("publish: %w", err)
			}
		}
	}
	shard := r.shards[0]
	if _, err := r.CreateConsumer(ctx, shard, o.Consumer, 0); err != nil {
		return acked, 0, err
	}
	ack = acked[len(acked)*3/4-1].Seq
	if _, err := r.Ack(ctx, shard, o.Consumer, ack); err != nil {
		return acked, 0, err
	}
	// Retention goes by what the catalog knows of the cursors: they go out with a slot.
	if err := r.Flush(ctx); err != nil {
		return acked, 0, fmt.Errorf("publish: %w", err)
	}
	_, err = s.catalog.SetRetention(ctx, s.top.Epoch, catalog.Retention{
		Mode: catalog.RetentionInterest, SegmentBytes: o.SegmentBytes, MinSegments: uint64(o.MinRetained),
	})
	return acked, ack, err
}

func countSegments(dir string) (int, error) {
	files, err := segmentFiles(dir)
	return len(files), err
}

func (seen *retained) retain(ctx context.Context, r *replica) error {
	got, err := r.Retain(ctx)
	if err != nil {
		return fmt.Errorf("retention: %w", err)
	}
	if why := got[0].Kept; !got[0].Raised {
		return fmt.Errorf("retention gave up nothing: %s; give more --events, or a smaller --segment-bytes or --min-retained-segments", why)
	}
	seen.watermark = got[0].WatermarkSeq
	return nil
}

func (seen *retained) read(ctx context.Context, r *replica) (err error) {
	dir := r.shardDir(0)
	if seen.after, err = countSegments(dir); err != nil {
		return err
	}
	ro, err := localtier.OpenReadOnly(ctx, dir)
	if err != nil {
		return err
	}
	seen.base, _ = ro.Local()
	if seen.rows, err = localRows(r.ReadShard(ctx, 0, seen.watermark+1, 0)); err != nil {
		return fmt.Errorf("read what is retained: %w", err)
	}
	_, seen.below = localRows(r.ReadShard(ctx, 0, seen.watermark, 0))
	return nil
}

func (seen *retained) restart(ctx context.Context, s *site, consumer string) error {
	r, err := s.start(ctx, "0", false, 0)
	if err != nil {
		return err
	}
	if seen.restarted, err = localRows(r.ReadShard(ctx, 0, seen.watermark+1, 0)); err != nil {
		return fmt.Errorf("read after the restart: %w", err)
	}
	_, seen.belowThen = localRows(r.ReadShard(ctx, 0, seen.watermark, 0))
	if seen.cursor, err = r.cursorOf(ctx, 0, consumer); err != nil {
		return err
	}
	res, err := r.Append(ctx, executions(1, 2)[0], []segment.Row{{Payload: []byte("after the restart")}}, localtier.AckLocal)
	if err != nil {
		return fmt.Errorf("append after the restart: %w", err)
	}
	seen.next = res.First
	return nil
}

// judge is pure.
func (seen *retained) judge() []Claim {
	return []Claim{
		{"bounded", seen.bounded()},
		{"gapless_from_base", gapless("what is retained", seen.rows, seen.watermark+1, seen.last())},
		{"retained_zero_loss", same("what is retained", from(seen.acked, seen.watermark+1), seen.rows)},
		{"reclaimed_absent", givenUp(seen.below, seen.watermark)},
		{"restart_ok", seen.restartOK()},
	}
}

func (seen *retained) last() segment.Seq {
	if len(seen.acked) == 0 {
		return 0
	}
	return seen.acked[len(seen.acked)-1].Seq
}

// bounded: something was given up, never beyond the consumer, and its files are gone.
func (seen *retained) bounded() error {
	switch {
	case seen.watermark == 0 || seen.ack == 0 || seen.watermark > seen.ack:
		return fmt.Errorf("the watermark is %d, the consumer's cursor %d", seen.watermark, seen.ack)
	case seen.after >= seen.before:
		return fmt.Errorf("%d segment files stood before, %d stand now", seen.before, seen.after)
	case seen.base != seen.watermark+1:
		return fmt.Errorf("the directory begins at seq %d, the watermark is %d", seen.base, seen.watermark)
	}
	return nil
}

// givenUp: a read below the watermark was told where rows begin, not shown any.
func givenUp(err error, watermark segment.Seq) error {
	var notLocal *localtier.NotLocalError
	if watermark == 0 || !errors.As(err, &notLocal) || notLocal.First != watermark+1 {
		return fmt.Errorf("a read at the watermark %d ended with: %w", watermark, orServed(err))
	}
	return nil
}

var errServed = errors.New("it was served")

func orServed(err error) error {
	if err == nil {
		return errServed
	}
	return err
}

// restartOK: after kill and restart the same rows, the cursor, and the seqs go on.
func (seen *retained) restartOK() error {
	if err := same("what is retained, after the restart", from(seen.acked, seen.watermark+1), seen.restarted); err != nil {
		return err
	}
	if err := givenUp(seen.belowThen, seen.watermark); err != nil {
		return err
	}
	if seen.ack == 0 || seen.cursor != seen.ack {
		return fmt.Errorf("the cursor is %d after the restart, acknowledged was %d", seen.cursor, seen.ack)
	}
	if seen.next != seen.last()+1 {
		return fmt.Errorf("the first append after the restart got seq %d, not %d", seen.next, seen.last()+1)
	}
	return nil
}
