package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// leftShard is a shard that a writer's disk has rows of which the shared tier has not, and
// that nobody serves from there: acknowledged by a process that had other shards.
type leftShard struct {
	Epoch segment.Epoch `json:"epoch"`
	Shard segment.Shard `json:"shard"`
	Rows  uint64        `json:"rows"` // beyond those that are absorbed; 0: it could not be told
	Dir   string        `json:"dir"`
	Error string        `json:"error,omitempty"`
}

// leftShards looks below --dir at the shards of the open epoch that this process has not; those
// of ended epochs are set aside by the writer. It changes nothing there.
func leftShards(ctx context.Context, t *tier, top catalog.Topology, own []localtier.ShardStatus) ([]leftShard, error) {
	mine := map[segment.Shard]bool{}
	for _, st := range own {
		mine[st.Chain.Shard] = true
	}
	var left []leftShard
	for shard := segment.Shard(0); uint32(shard) < top.Shards; shard++ {
		chain := segment.Chain{Epoch: top.Epoch, Shard: shard}
		dir := filepath.Join(t.dir, writerDir, chain.String())
		if _, err := os.Stat(dir); mine[shard] || errors.Is(err, fs.ErrNotExist) || servedByAnother(dir) {
			continue
		}
		row, err := t.catalog.Chain(ctx, chain)
		if err != nil {
			return left, fmt.Errorf("the chain of %s: %w", dir, err)
		}
		switch log, err := localtier.OpenReadOnly(ctx, dir); {
		case err != nil:
			left = append(left, leftShard{Epoch: top.Epoch, Shard: shard, Dir: dir, Error: err.Error()})
		default:
			if next, absorbed := log.State().DurableNext, max(row.NextSeq, 1); next > absorbed {
				left = append(left, leftShard{Epoch: top.Epoch, Shard: shard, Rows: uint64(next - absorbed), Dir: dir})
			}
		}
	}
	return left, nil
}

// servedByAnother says whether a process has the lock of a shard's directory: it publishes
// what is there. Where that cannot be told, nobody is known to, and it is better said twice.
func servedByAnother(dir string) bool {
	held, err := wal.Held(filepath.Join(dir, segment.LockFile))
	return held && err == nil
}

// leftEvery is how often a writer looks again, besides whenever it is asked: the lock of each
// other directory, and the log of those that nobody serves.
const leftEvery = 5 * time.Minute

// left are the shards that this disk has rows of and this process has not.
func (s *service) left(ctx context.Context, top catalog.Topology, own []localtier.ShardStatus) ([]leftShard, error) {
	left, err := leftShards(ctx, s.tier, top, own)
	if err == nil {
		s.lastLeft.Store(&left)
	}
	return left, err
}

// watchLeft keeps the metric true until ctx ends.
func (s *service) watchLeft(ctx context.Context) error {
	t := time.NewTicker(leftEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		now := s.now.Load()
		if _, err := s.left(ctx, now.top, now.writer.Status()); err != nil && ctx.Err() == nil {
			s.log.Warn("whether this disk has rows of other shards could not be told", "error", err)
		}
	}
}

// leftBehind is what was found last.
func (s *service) leftBehind() (shards int, rows uint64) {
	left := s.lastLeft.Load()
	if left == nil {
		return 0, 0
	}
	for _, l := range *left {
		rows += l.Rows
	}
	return len(*left), rows
}

// nextForLeft is what an operator does about it.
const nextForLeft = "no process publishes them: start a writer with this --dir and --shards that include the shard (beside this one, or instead of it); " +
	"if another writer has the chain by now, that start sets the rows aside for strandline salvage. Do not delete the directory"

// sayLeft tells the log, a line a shard.
func sayLeft(log *slog.Logger, left []leftShard, err error) {
	if err != nil {
		log.Warn("whether this disk has rows of other shards could not be told", "error", err)
	}
	for _, l := range left {
		args := []any{"epoch", l.Epoch, "shard", l.Shard, "rows", l.Rows, "dir", l.Dir}
		if l.Error != "" {
			args = append(args, "error", l.Error)
		}
		log.Error("this disk has acknowledged rows of a shard that this process was not started with, and the bucket has not", append(args, "next", nextForLeft)...)
	}
}
