package drive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/google/uuid"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

func (seen *affine) judge() []Claim {
	return []Claim{
		{"owner_writes_ok", seen.ownerWrites()},
		{"nonowner_refused_ok", seen.nonownerRefused()},
		{"single_writer_invariant", seen.singleWriter()},
		{"coldload_read_ok", seen.streamsAre("read by a replica that does not own it", seen.cold)},
		{"crash_recovery_ok", seen.recovered()},
	}
}

// ownerWrites: each append was answered by the shard that the hash names.
func (seen *affine) ownerWrites() error {
	if len(seen.acked) == 0 || len(seen.answered) != len(seen.acked) {
		return fmt.Errorf("%d appends, %d answers", len(seen.acked), len(seen.answered))
	}
	for i, e := range seen.acked {
		if want := segment.ShardOf(e.Stream, seen.shards); seen.answered[i] != want || e.Seq == 0 {
			return fmt.Errorf("%s was taken by shard %d, the hash says %d", e, seen.answered[i], want)
		}
	}
	return nil
}

// nonownerRefused: every refusal names the owner's shard, and nothing was written for it.
func (seen *affine) nonownerRefused() error {
	if want := len(seen.streams) * int(seen.shards-1); len(seen.refusals) != want || want == 0 {
		return fmt.Errorf("%d appends at replicas that do not own the stream, not %d", len(seen.refusals), want)
	}
	for _, r := range seen.refusals {
		var no *localtier.NotOwnerError
		switch {
		case !errors.As(r.err, &no):
			return fmt.Errorf("an append to %s where it does not belong ended with: %w", r.stream, orTaken(r.err))
		case no.Shard != segment.ShardOf(r.stream, seen.shards) || no.Owner == "":
			return fmt.Errorf("the refusal of %s names shard %d at %q", r.stream, no.Shard, no.Owner)
		}
	}
	if len(seen.before) == 0 {
		return errors.New("nothing was measured around the refusals")
	}
	for what, n := range seen.after {
		if was, ok := seen.before[what]; !ok || was != n {
			return fmt.Errorf("a refusal had an effect: %s was %d, is %d", what, was, n)
		}
	}
	return nil
}

var errTaken = errors.New("it was taken")

func orTaken(err error) error {
	if err == nil {
		return errTaken
	}
	return err
}

// singleWriter: catalog and directory agree on one owner a shard, no two shards' rows
// mix, and nobody else can become owner beside it.
func (seen *affine) singleWriter() error {
	if len(seen.owners) != int(seen.shards) || seen.shards == 0 {
		return fmt.Errorf("the owners of %d shards are known, of %d", len(seen.owners), seen.shards)
	}
	writers := map[segment.UUID]int{}
	for i, o := range seen.owners {
		if o.row == uuid.Nil || o.row != o.directory || o.term == 0 {
			return fmt.Errorf("shard %d: the catalog's owner is %s, the directory's %s", i, o.row, o.directory)
		}
		if other, twice := writers[o.row]; twice {
			return fmt.Errorf("shards %d and %d have one directory", other, i)
		}
		writers[o.row] = i
		for _, e := range o.rows {
			if s := segment.ShardOf(e.Stream, seen.shards); int(s) != i {
				return fmt.Errorf("%s of shard %d lies in shard %d", e, s, i)
			}
		}
		if err := same(fmt.Sprintf("shard %d", i), seen.ofShard(segment.Shard(i)), o.rows); err != nil {
			return err
		}
		if !errors.Is(o.second, wal.ErrLocked) {
			return fmt.Errorf("shard %d: a second writer on its directory ended with: %w", i, orTaken(o.second))
		}
		if !errors.Is(o.elsewhere, localtier.ErrHeld) {
			return fmt.Errorf("shard %d: a second writer on another disk ended with: %w", i, orTaken(o.elsewhere))
		}
	}
	return nil
}

func (seen *affine) ofShard(s segment.Shard) (out []event) {
	for _, e := range seen.acked {
		if segment.ShardOf(e.Stream, seen.shards) == s {
			out = append(out, e)
		}
	}
	return out
}

// streamsAre: each stream, read that way, is what was acknowledged.
func (seen *affine) streamsAre(how string, got map[string][]event) error {
	return streamsAre(how, seen.acked, seen.streams, got)
}

func streamsAre(how string, acked []event, streams []string, got map[string][]event) error {
	if len(streams) == 0 {
		return errors.New("there are no streams")
	}
	for _, stream := range streams {
		if err := same(stream+" "+how, ofStream(acked, stream), got[stream]); err != nil {
			return err
		}
	}
	return nil
}

// recovered: after kill and restart every owner serves its streams, and goes on behind them.
func (seen *affine) recovered() error {
	if err := seen.streamsAre("after the restart", seen.resident); err != nil {
		return err
	}
	if len(seen.next) != int(seen.shards) {
		return fmt.Errorf("%d of %d shards took rows after the restart", len(seen.next), seen.shards)
	}
	for i, next := range seen.next {
		if want := segment.Seq(len(seen.ofShard(segment.Shard(i)))) + 1; next != want {
			return fmt.Errorf("shard %d went on with seq %d, not %d", i, next, want)
		}
	}
	return nil
}

// dirGone says whether a directory is not there.
func dirGone(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}
