package drive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

// pruned is what the shared-gc drive read back, of shard 0 unless it says otherwise.
type pruned struct {
	shards    uint32
	acked     []event
	ack       segment.Seq
	watermark segment.Seq
	through   segment.ID // the slot that ends with it
	end       segment.ID // absorbed_end after the run
	before    []segment.ID
	after     []segment.ID // slots in the bucket, once the auditor was done

	owner      []event // at the owner
	ownerBelow error
	cold       []event // by a reader without a disk
	coldBelow  error

	hydrated  bool
	heir      []event // on the new owner's own disk
	heirBase  segment.Seq
	heirBelow error
	cursor    segment.Seq
	next      segment.Seq

	others      []event // acknowledged in other shards
	othersThere []event // of them, in the bucket at the end
}

// runSharedGC: retention at the owner of shard 0, then the auditor in the bucket; owner,
// a reader without a disk and a new owner must see the same.
func runSharedGC(ctx context.Context, o *Options, s *site) *Report {
	seen, err := observeSharedGC(ctx, o, s)
	return &Report{
		Figures: []Figure{
			{"shard_count", int64(seen.shards)},
			{"events", int64(len(seen.acked))},
			{"watermark", int64(seen.watermark)},
			{"shared_before", int64(len(seen.before))},
			{"shared_after", int64(len(seen.after))},
		},
		Claims: seen.judge(), Stopped: err,
	}
}

func observeSharedGC(ctx context.Context, o *Options, s *site) (seen pruned, err error) {
	seen.shards = o.Shards
	streams := executions(o.Shards, 2)
	pool, err := s.pool(ctx, func(shard segment.Shard) string { return fmt.Sprint(shard) })
	if err != nil {
		return seen, err
	}
	for _, step := range []func() error{
		func() error { return seen.appendOthers(ctx, pool[1:], streams) },
		func() (err error) {
			seen.acked, seen.ack, err = s.consume(ctx, pool[0], o, onShard(streams, o.Shards, 0))
			return err
		},
		func() (err error) { seen.before, err = s.slots(ctx, 0); return err },
		func() error { return seen.retain(ctx, pool[0], s) },
		func() error { return s.at(ctx, "retained", s) },
		func() error { return s.audit(ctx) },
		func() (err error) { seen.after, err = s.slots(ctx, 0); return err },
		func() error { return s.at(ctx, "audited", s) },
		func() error { return seen.read(ctx, pool[0], s) },
		func() error { return pool[0].lose(ctx) },
		func() error { return s.at(ctx, "lost", s) },
		func() error { return seen.inherit(ctx, s, o.Consumer) },
		func() error { return seen.readOthers(ctx, s) },
	} {
		if err := step(); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// appendOthers gives every other shard rows that nobody consumes.
func (seen *pruned) appendOthers(ctx context.Context, pool []*replica, streams []string) error {
	for _, r := range pool {
		for range 2 {
			acked, err := r.append(ctx, makeEvents(3, onShard(streams, seen.shards, r.shards[0])))
			if err != nil {
				return err
			}
			seen.others = append(seen.others, acked...)
			if err := r.Flush(ctx); err != nil {
				return fmt.Errorf("publish: %w", err)
			}
		}
	}
	return nil
}

func (seen *pruned) retain(ctx context.Context, r *replica, s *site) error {
	var own retained
	if err := own.retain(ctx, r); err != nil {
		return err
	}
	row, err := s.catalog.Chain(ctx, s.chain(0))
	if err != nil {
		return err
	}
	seen.watermark, seen.through, seen.end = row.WatermarkSeq, row.WatermarkSegment, row.AbsorbedEnd
	if own.watermark != seen.watermark {
		return fmt.Errorf("the owner's run says watermark %d, the catalog %d", own.watermark, seen.watermark)
	}
	return nil
}

// auditRounds bounds the auditor's runs: each sees through what comes due within some graces.
const auditRounds = 5

// audit runs the auditor until nothing is due: reclaim, and the trim-check one grace later.
func (s *site) audit(ctx context.Context) error {
	settler, err := settle.New(settle.Deps{
		Catalog: s.catalog, Classes: s.classes, Clock: time.Now, Logger: s.log,
		NewNonce: uuid.NewString, NewUUID: uuid.New,
	}, settle.Config{})
	if err != nil {
		return err
	}
	for range auditRounds {
		aud, err := auditor.New(auditor.Deps{
			ID: uuid.NewString(), Catalog: s.catalog, Classes: s.classes, Settler: settler, Logger: slog.New(slog.DiscardHandler), Clock: time.Now,
		}, auditor.Config{})
		if err != nil {
			return err
		}
		sum, err := aud.Once(ctx, auditor.OnceOptions{Linger: 3 * readGrace})
		if err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		if sum.Held == "" {
			return nil
		}
	}
	return errors.New("the auditor's deletes are held back; is the clock being set?")
}

func (seen *pruned) read(ctx context.Context, owner *replica, s *site) (err error) {
	if seen.owner, err = localRows(owner.ReadShard(ctx, 0, seen.watermark+1, 0)); err != nil {
		return fmt.Errorf("read at the owner: %w", err)
	}
	_, seen.ownerBelow = localRows(owner.ReadShard(ctx, 0, seen.watermark, 0))
	if seen.cold, err = scanRows(s.reader.Scan(ctx, s.chain(0), 0)); err != nil {
		return fmt.Errorf("read from the bucket: %w", err)
	}
	_, seen.coldBelow = scanRows(s.reader.Scan(ctx, s.chain(0), seen.watermark))
	return nil
}

// hydrateWait bounds the wait for a new owner's disk to be filled, hydrateEvery paces it.
const (
	hydrateWait  = 30 * time.Second
	hydrateEvery = 10 * time.Millisecond
)

// inherit starts an owner on an empty disk, and waits until it has hydrated all.
func (seen *pruned) inherit(ctx context.Context, s *site, consumer string) error {
	r, err := s.start(ctx, "heir", true, 0)
	if err != nil {
		return err
	}
	if err := seen.awaitHydrated(ctx, r); err != nil {
		return err
	}
	ro, err := localtier.OpenReadOnly(ctx, r.shardDir(0))
	if err != nil {
		return err
	}
	seen.heirBase, _ = ro.Local()
	if seen.heir, err = localRows(r.ReadShard(ctx, 0, seen.watermark+1, 0)); err != nil {
		return fmt.Errorf("read at the new owner: %w", err)
	}
	_, seen.heirBelow = localRows(r.ReadShard(ctx, 0, seen.watermark, 0))
	if seen.cursor, err = r.cursorOf(ctx, 0, consumer); err != nil {
		return err
	}
	res, err := r.Append(ctx, seen.acked[0].Stream, []segment.Row{{Payload: []byte("the heir's")}}, localtier.AckShared)
	if err != nil {
		return fmt.Errorf("append at the new owner: %w", err)
	}
	seen.next = res.First
	return nil
}

func (seen *pruned) awaitHydrated(ctx context.Context, r *replica) error {
	bound, cancel := context.WithTimeout(ctx, hydrateWait)
	defer cancel()
	tick := time.NewTicker(hydrateEvery)
	defer tick.Stop()
	for {
		if st := r.Status()[0]; st.HydrateTotal > 0 && st.Hydrated == st.HydrateTotal {
			seen.hydrated = true
			return nil
		}
		select {
		case <-tick.C:
		case <-bound.Done():
			return ctx.Err() // not hydrated in time is a finding, not a fault
		}
	}
}

func (seen *pruned) readOthers(ctx context.Context, s *site) error {
	for shard := segment.Shard(1); uint32(shard) < seen.shards; shard++ {
		rows, err := scanRows(s.reader.Scan(ctx, s.chain(shard), 1))
		if err != nil {
			return fmt.Errorf("read shard %d: %w", shard, err)
		}
		seen.othersThere = append(seen.othersThere, rows...)
	}
	return nil
}
