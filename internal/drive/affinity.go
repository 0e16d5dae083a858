package drive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// affine is what the affinity drive read back.
type affine struct {
	shards   uint32
	streams  []string
	acked    []event          // by their owners, with the seqs they got
	answered []segment.Shard  // the shard that each answer named
	refusals []refusal        // of appends at replicas that do not own the shard
	before   map[string]int64 // every file of the disk with its size, before the refusals
	after    map[string]int64 // and after
	owners   []owning         // by shard
	cold     map[string][]event
	resident map[string][]event // after kill and restart
	next     []segment.Seq      // what the first append after the restart got, by shard
}

// refusal is the answer of a replica to an append that is not its own.
type refusal struct {
	stream string
	err    error
}

// owning is who owns a shard, as seen from three sides.
type owning struct {
	row, directory segment.UUID // the owner in the catalog; the writer of the directory
	term           segment.Term
	rows           []event // in the directory
	second         error   // of another writer on the same directory
	elsewhere      error   // of another writer on a disk of its own
}

// runAffinity: one replica a shard over one disk. Owners append, all others are refused
// and read the owner's files read-only; then all are killed and restarted.
func runAffinity(ctx context.Context, o *Options, s *site) *Report {
	seen, err := observeAffinity(ctx, o, s)
	return &Report{
		Figures: []Figure{
			{"shard_count", int64(seen.shards)},
			{"executions", int64(len(seen.streams))},
			{"owner_appends", int64(len(seen.acked))},
			{"nonowner_refusals", int64(len(seen.refusals))},
		},
		Claims: seen.judge(), Stopped: err,
	}
}

func observeAffinity(ctx context.Context, o *Options, s *site) (seen affine, err error) {
	seen.shards, seen.streams = o.Shards, executions(o.Shards, 2)
	pool, err := s.pool(ctx, func(segment.Shard) string { return "one" })
	if err != nil {
		return seen, err
	}
	events := makeEvents(max(o.Events, len(seen.streams)), seen.streams)
	for _, step := range []func() error{
		func() error { return seen.appendAt(ctx, pool, events) },
		func() error { return seen.refuse(ctx, pool, s) },
		func() error { return s.at(ctx, "refused", s) },
		func() error { return seen.look(ctx, pool, s) },
		func() error { return seen.readCold(ctx, pool[0], s) },
		func() error { return killAll(ctx, pool) },
		func() error { return s.at(ctx, "killed", s) },
		func() error { return seen.restart(ctx, s) },
	} {
		if err := step(); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// pool starts a replica for each shard.
func (s *site) pool(ctx context.Context, disk func(segment.Shard) string) ([]*replica, error) {
	var pool []*replica
	for shard := range segment.Shard(s.top.Shards) {
		r, err := s.start(ctx, disk(shard), false, shard)
		if err != nil {
			return nil, err
		}
		pool = append(pool, r)
	}
	return pool, nil
}

func killAll(ctx context.Context, pool []*replica) error {
	var errs []error
	for _, r := range pool {
		errs = append(errs, r.kill(ctx))
	}
	return errors.Join(errs...)
}

// appendAt sends each event to the owner that the hash names.
func (seen *affine) appendAt(ctx context.Context, pool []*replica, events []event) error {
	for _, e := range events {
		owner := pool[segment.ShardOf(e.Stream, seen.shards)]
		res, err := owner.Append(ctx, e.Stream, []segment.Row{e.row()}, localtier.AckLocal)
		if err != nil {
			return fmt.Errorf("the owner's append: %w", err)
		}
		e.Seq = res.First
		seen.acked = append(seen.acked, e)
		seen.answered = append(seen.answered, res.Shard)
	}
	return nil
}

// refuse sends a row of each stream to every replica that does not own it.
func (seen *affine) refuse(ctx context.Context, pool []*replica, s *site) (err error) {
	if seen.before, err = s.files(pool); err != nil {
		return err
	}
	for _, stream := range seen.streams {
		for i, r := range pool {
			if segment.Shard(i) == segment.ShardOf(stream, seen.shards) {
				continue
			}
			_, err := r.Append(ctx, stream, []segment.Row{{Payload: []byte("not mine")}}, localtier.AckLocal)
			seen.refusals = append(seen.refusals, refusal{stream, err})
		}
	}
	seen.after, err = s.files(pool)
	return err
}

// files measures what appends change: how far each shard's log goes, and which files there are.
func (s *site) files(pool []*replica) (map[string]int64, error) {
	out := map[string]int64{}
	for _, r := range pool {
		for _, st := range r.Status() {
			out["next seq of "+st.Chain.String()] = int64(st.NextSeq)
		}
		err := filepath.WalkDir(r.disk, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				out[path] = 0
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// look asks catalog, directory and a second writer who owns each shard.
func (seen *affine) look(ctx context.Context, pool []*replica, s *site) error {
	for i, r := range pool {
		shard := segment.Shard(i)
		row, err := s.catalog.Chain(ctx, s.chain(shard))
		if err != nil {
			return err
		}
		ro, err := localtier.OpenReadOnly(ctx, r.shardDir(shard))
		if err != nil {
			return err
		}
		own := owning{row: row.Owner, term: row.Term, directory: ro.Owner()}
		if own.rows, err = localRows(ro.ReadShard(ctx, 1, 0)); err != nil {
			return err
		}
		own.second = s.intrude(ctx, "one", shard)
		own.elsewhere = s.intrude(ctx, "intruder", shard)
		seen.owners = append(seen.owners, own)
	}
	return nil
}

// intrude tries to become a shard's second owner, and answers what became of it.
func (s *site) intrude(ctx context.Context, disk string, shard segment.Shard) error {
	r, err := s.start(ctx, disk, false, shard)
	if err == nil {
		return r.stop(ctx)
	}
	return err
}

// readCold reads each stream as a replica that does not own it: the owner's files,
// opened read-only beside it.
func (seen *affine) readCold(ctx context.Context, any *replica, s *site) error {
	seen.cold = map[string][]event{}
	for _, stream := range seen.streams {
		dir := filepath.Join(any.disk, s.chain(segment.ShardOf(stream, seen.shards)).String())
		ro, err := localtier.OpenReadOnly(ctx, dir)
		if err != nil {
			return fmt.Errorf("open another's shard read-only: %w", err)
		}
		if seen.cold[stream], err = streamRows(stream, ro.Read(ctx, stream, 1, 0)); err != nil {
			return fmt.Errorf("read %s cold: %w", stream, err)
		}
	}
	return nil
}

func (seen *affine) restart(ctx context.Context, s *site) error {
	pool, err := s.pool(ctx, func(segment.Shard) string { return "one" })
	if err != nil {
		return err
	}
	seen.resident = map[string][]event{}
	for _, stream := range seen.streams {
		r := pool[segment.ShardOf(stream, seen.shards)]
		if seen.resident[stream], err = streamRows(stream, r.Read(ctx, stream, 1, 0)); err != nil {
			return fmt.Errorf("read %s after the restart: %w", stream, err)
		}
	}
	for i, r := range pool {
		stream := onShard(seen.streams, seen.shards, segment.Shard(i))[0]
		res, err := r.Append(ctx, stream, []segment.Row{{Payload: []byte("after the restart")}}, localtier.AckLocal)
		if err != nil {
			return fmt.Errorf("append after the restart: %w", err)
		}
		seen.next = append(seen.next, res.First)
	}
	return nil
}

// judge is pure.
