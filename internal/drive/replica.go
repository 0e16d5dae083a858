package drive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// maxAge keeps segments from sealing by themselves while a drive runs.
const maxAge = 24 * time.Hour

// replica is a writer on a disk.
type replica struct {
	*localtier.Writer
	site   *site
	disk   string // its directory
	shards []segment.Shard
	dead   atomic.Bool // nothing of it is sent any more
	closed bool
}

var errKilled = errors.New("killed")

// start opens a writer for some shards on a disk, which is a directory of the site.
// steal takes them from an owner whose lease still lives: one that was just killed.
func (s *site) start(ctx context.Context, disk string, steal bool, shards ...segment.Shard) (*replica, error) {
	r := &replica{site: s, disk: filepath.Join(s.dir, "disk-"+disk), shards: shards}
	var err error
	r.Writer, err = localtier.Open(ctx, localtier.Options{
		Dir: r.disk, Catalog: s.catalog, Classes: s.classes, Topology: s.top, Shards: shards,
		Address: "drive://" + disk, Steal: steal, Config: config(), Logger: s.log,
		Cut: func(localtier.Step) error {
			if r.dead.Load() {
				return errKilled
			}
			return nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("start a replica on %s: %w", disk, err)
	}
	s.replicas = append(s.replicas, r)
	return r, nil
}

func (r *replica) shardDir(shard segment.Shard) string {
	return filepath.Join(r.disk, r.site.chain(shard).String())
}

// kill ends a replica as SIGKILL would. Its shard directories are copied as they stand
// while it runs; it is shut without sending, sealing or releasing anything; and what the
// shutting did to the originals goes with them.
func (r *replica) kill(ctx context.Context) error {
	r.dead.Store(true)
	for _, shard := range r.shards {
		if err := copyShard(r.shardDir(shard), image(r.shardDir(shard))); err != nil {
			return fmt.Errorf("kill: %w", err)
		}
	}
	r.shut(ctx)
	for _, shard := range r.shards {
		dir := r.shardDir(shard)
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("kill: %w", err)
		}
		if err := os.Rename(image(dir), dir); err != nil {
			return fmt.Errorf("kill: %w", err)
		}
	}
	return nil
}

// lose is kill with the disk gone.
func (r *replica) lose(ctx context.Context) error {
	r.dead.Store(true)
	r.shut(ctx)
	for _, shard := range r.shards {
		if err := os.RemoveAll(r.shardDir(shard)); err != nil {
			return fmt.Errorf("lose the disk: %w", err)
		}
	}
	return nil
}

// shut ends the goroutines and closes the files.
func (r *replica) shut(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	r.closed = true
	_ = r.Close(ctx) // a killed process reports nothing
}

// stop ends a replica in order.
func (r *replica) stop(ctx context.Context) error {
	if r.closed {
		return nil
	}
	r.closed = true
	return r.Close(ctx)
}

func image(dir string) string { return dir + ".image" }

// copyShard copies a shard directory, all but its lock, which dies with its process.
func copyShard(from, to string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(to, "LOCK")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// append appends events one by one, each acknowledged when it is durable on the disk,
// and returns them with the seqs that they got.
func (r *replica) append(ctx context.Context, events []event) ([]event, error) {
	acked := make([]event, 0, len(events))
	for _, e := range events {
		res, err := r.Append(ctx, e.Stream, []segment.Row{e.row()}, localtier.AckLocal)
		if err != nil {
			return acked, fmt.Errorf("append: %w", err)
		}
		e.Seq = res.First
		acked = append(acked, e)
	}
	return acked, nil
}

// cursorOf is the cursor of a durable consumer; an error if it is not known.
func (r *replica) cursorOf(ctx context.Context, shard segment.Shard, name string) (segment.Seq, error) {
	cs, err := r.Consumers(ctx, shard)
	if err != nil {
		return 0, err
	}
	for _, c := range cs {
		if c.Name == name {
			return c.Cursor, nil
		}
	}
	return 0, fmt.Errorf("shard %d has no consumer %q: %w", shard, name, localtier.ErrNoConsumer)
}
