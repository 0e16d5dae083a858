package drive

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// sharing is what the shared drive read back.
type sharing struct {
	shards  uint32
	streams []string
	acked   []event
	ack     segment.Seq // the consumer of shard 0

	slots    map[segment.Shard][]segment.ID // that stand in the bucket
	absorbed map[segment.Shard]catalog.ChainRow
	cold     map[string][]event // by a reader without any disk
	resident map[segment.Shard][]event
	scanned  map[segment.Shard][]event // the same shards from the bucket

	missed   []event // what a reader found before anything was published, and of a stream nobody has
	misses   int     // how many of those reads there were
	missErrs []error // those that ended in anything but "nothing there"

	lost   bool    // the first owner's disk is gone
	after  []event // shard 0 at its new owner
	cursor segment.Seq
	next   segment.Seq // what the new owner's first append got
	again  []event     // shard 0 from the bucket, with that append
}

// runShared: a replica a shard, each with a disk of its own, over one bucket. All is
// published; readers read it from the bucket; the owner of shard 0 is killed with its
// disk, and another takes the shard from the bucket alone.
func runShared(ctx context.Context, o *Options, s *site) *Report {
	seen, err := observeShared(ctx, o, s)
	var slots int
	for _, ids := range seen.slots {
		slots += len(ids)
	}
	return &Report{
		Figures: []Figure{
			{"shard_count", int64(seen.shards)}, {"executions", int64(len(seen.streams))}, {"shared_segments", int64(slots)},
		},
		Claims: seen.judge(), Stopped: err,
	}
}

func observeShared(ctx context.Context, o *Options, s *site) (seen sharing, err error) {
	seen.shards, seen.streams = o.Shards, executions(o.Shards, 2)
	pool, err := s.pool(ctx, func(shard segment.Shard) string { return fmt.Sprint(shard) })
	if err != nil {
		return seen, err
	}
	events := makeEvents(max(o.Events, 2*len(seen.streams)), seen.streams)
	for _, step := range []func() error{
		func() error { seen.miss(ctx, s); return nil },
		func() error { return seen.publish(ctx, pool, events, o.Consumer) },
		func() error { return s.at(ctx, "published", s) },
		func() error { return seen.read(ctx, pool, s) },
		func() error { return pool[0].lose(ctx) },
		func() error { seen.lost = dirGone(pool[0].shardDir(0)); return s.at(ctx, "lost", s) },
		func() error { return seen.inherit(ctx, s, o.Consumer) },
	} {
		if err := step(); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// miss reads what is not there yet: empty, and no error but that nothing is there.
func (seen *sharing) miss(ctx context.Context, s *site) {
	note := func(rows []event, err error) {
		seen.misses++
		seen.missed = append(seen.missed, rows...)
		if err != nil && !errors.Is(err, catalog.ErrNotFound) {
			seen.missErrs = append(seen.missErrs, err)
		}
	}
	for _, stream := range seen.streams {
		note(coldRows(stream, s.reader.Rows(ctx, stream, segment.Pos{}, segment.Pos{})))
	}
	for shard := range segment.Shard(seen.shards) {
		note(scanRows(s.reader.Scan(ctx, s.chain(shard), 0)))
	}
}

// publish appends everything at its owner, in two slots each, the consumer's
// acknowledgement in the second.
func (seen *sharing) publish(ctx context.Context, pool []*replica, events []event, consumer string) error {
	for i, half := range [][]event{events[:len(events)/2], events[len(events)/2:]} {
		for _, r := range pool {
			acked, err := r.append(ctx, ofShard(half, seen.shards, r.shards[0]))
			if err != nil {
				return err
			}
			seen.acked = append(seen.acked, acked...)
		}
		if i == 1 {
			if _, err := pool[0].CreateConsumer(ctx, 0, consumer, 0); err != nil {
				return err
			}
			if _, err := pool[0].Ack(ctx, 0, consumer, 1); err != nil {
				return err
			}
			seen.ack = 1
		}
		for _, r := range pool {
			if err := r.Flush(ctx); err != nil {
				return fmt.Errorf("publish: %w", err)
			}
		}
	}
	return nil
}

func ofShard(events []event, shards uint32, s segment.Shard) (out []event) {
	for _, e := range events {
		if segment.ShardOf(e.Stream, shards) == s {
			out = append(out, e)
		}
	}
	return out
}

// read looks at the bucket, at the catalog, and reads every stream and shard without a disk.
func (seen *sharing) read(ctx context.Context, pool []*replica, s *site) (err error) {
	seen.slots, seen.absorbed = map[segment.Shard][]segment.ID{}, map[segment.Shard]catalog.ChainRow{}
	seen.cold, seen.resident, seen.scanned = map[string][]event{}, map[segment.Shard][]event{}, map[segment.Shard][]event{}
	for i, r := range pool {
		shard := segment.Shard(i)
		if seen.slots[shard], err = s.slots(ctx, shard); err != nil {
			return err
		}
		if seen.absorbed[shard], err = s.catalog.Chain(ctx, s.chain(shard)); err != nil {
			return err
		}
		if seen.resident[shard], err = localRows(r.ReadShard(ctx, shard, 1, 0)); err != nil {
			return fmt.Errorf("read shard %d at its owner: %w", shard, err)
		}
		if seen.scanned[shard], err = scanRows(s.reader.Scan(ctx, s.chain(shard), 0)); err != nil {
			return fmt.Errorf("read shard %d from the bucket: %w", shard, err)
		}
	}
	for _, stream := range seen.streams {
		if seen.cold[stream], err = coldRows(stream, s.reader.Rows(ctx, stream, segment.Pos{}, segment.Pos{})); err != nil {
			return fmt.Errorf("read %s from the bucket: %w", stream, err)
		}
	}
	rows, err := coldRows("nobody", s.reader.Rows(ctx, "nobody", segment.Pos{}, segment.Pos{}))
	seen.misses++
	seen.missed = append(seen.missed, rows...)
	if !errors.Is(err, catalog.ErrNotFound) {
		seen.missErrs = append(seen.missErrs, fmt.Errorf("a stream that nobody has: %w", orTaken(err)))
	}
	return nil
}

// inherit starts an owner of shard 0 on an empty disk.
func (seen *sharing) inherit(ctx context.Context, s *site, consumer string) error {
	r, err := s.start(ctx, "heir", true, 0)
	if err != nil {
		return err
	}
	src := httpapi.ShardSource{Local: r, Cold: s.reader, Catalog: s.catalog}
	if seen.after, err = scanRows(src.Rows(ctx, s.chain(0), 0, 0)); err != nil {
		return fmt.Errorf("read shard 0 at its new owner: %w", err)
	}
	if seen.cursor, err = r.cursorOf(ctx, 0, consumer); err != nil {
		return err
	}
	res, err := r.Append(ctx, onShard(seen.streams, seen.shards, 0)[0], []segment.Row{{Payload: []byte("the heir's")}}, localtier.AckShared)
	if err != nil {
		return fmt.Errorf("append at the new owner: %w", err)
	}
	seen.next = res.First
	seen.again, err = scanRows(s.reader.Scan(ctx, s.chain(0), 0))
	return err
}

// judge is pure.
func (seen *sharing) judge() []Claim {
	return []Claim{
		{"owner_published_ok", seen.published()},
		{"nonowner_coldload_from_shared_ok", streamsAre("from the bucket", seen.acked, seen.streams, seen.cold)},
		{"crash_recovery_from_shared_ok", seen.inherited()},
		{"shared_miss_ok", seen.missing()},
		{"parity_ok", seen.parity()},
	}
}

// published: of every shard slots stand in the bucket, all of them absorbed, up to its last row.
func (seen *sharing) published() error {
	if seen.shards == 0 || len(seen.slots) != int(seen.shards) {
		return fmt.Errorf("slots of %d shards were looked at, not %d", len(seen.slots), seen.shards)
	}
	for shard, ids := range seen.slots {
		row := seen.absorbed[shard]
		if len(ids) == 0 || len(ids) != int(row.AbsorbedEnd-row.Trimmed) {
			return fmt.Errorf("shard %d: %d slots stand, %d are absorbed", shard, len(ids), row.AbsorbedEnd-row.Trimmed)
		}
		if n := len(ofShard(seen.acked, seen.shards, shard)); n == 0 || row.NextSeq != segment.Seq(n)+1 {
			return fmt.Errorf("shard %d: %d rows were acknowledged, the next absorbed is %d", shard, n, row.NextSeq)
		}
	}
	return nil
}

// inherited: with the owner's disk gone, the new one has all rows and the cursor, goes
// on behind them, and readers see both.
func (seen *sharing) inherited() error {
	want := ofShard(seen.acked, seen.shards, 0)
	if !seen.lost {
		return errors.New("the first owner's disk is still there")
	}
	if err := same("shard 0 at its new owner", want, seen.after); err != nil {
		return err
	}
	if seen.ack == 0 || seen.cursor != seen.ack {
		return fmt.Errorf("the consumer's cursor is %d at the new owner, acknowledged was %d", seen.cursor, seen.ack)
	}
	if seen.next != segment.Seq(len(want))+1 {
		return fmt.Errorf("the new owner went on with seq %d, not %d", seen.next, len(want)+1)
	}
	if len(seen.again) != len(want)+1 {
		return fmt.Errorf("after the new owner's append the bucket has %d rows of shard 0, not %d", len(seen.again), len(want)+1)
	}
	return same("shard 0 in the bucket", want, seen.again[:len(want)])
}

// missing: what was not published reads as nothing, not as a fault.
func (seen *sharing) missing() error {
	if want := len(seen.streams) + int(seen.shards) + 1; seen.misses != want {
		return fmt.Errorf("%d reads of what is not there, not %d", seen.misses, want)
	}
	if len(seen.missed) > 0 {
		return fmt.Errorf("%s was read before it was published", seen.missed[0])
	}
	return errors.Join(seen.missErrs...)
}

// parity: the owner's files and the bucket give the same rows.
func (seen *sharing) parity() error {
	if seen.shards == 0 {
		return errors.New("no shards")
	}
	for shard := range segment.Shard(seen.shards) {
		if err := same(fmt.Sprintf("shard %d in the bucket, against its owner", shard), seen.resident[shard], seen.scanned[shard]); err != nil {
			return err
		}
	}
	return nil
}
