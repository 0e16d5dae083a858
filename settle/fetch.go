package settle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// sources is the fetch cache of one batch: the live part of every source comes
// over the network once, however many members it feeds. Up to a bound it is kept
// in memory, the rest in an unlinked temporary file.
type sources struct {
	classes objstore.Classes
	budget  Budget
	dir     string
	list    []*object
	byKey   map[string]*object

	mu     sync.Mutex
	memory int64    // left; mu
	spool  *os.File // nil until needed; mu
	end    int64    // of the spool; mu
}

// object is one that the batch reads.
type object struct {
	set    objstore.Set // the buckets that may have it, the deciding one first
	key    string
	want   []span // what passes through this process
	proofs []proof
	ranges []*fetched

	ready chan struct{} // closed when all below is final
	etag  string
	err   error
}

type span struct{ off, n int64 }

func (s span) end() int64 { return s.off + s.n }

// proof is what a chunk's stored bytes must add up to. It is asked here only where another
// bucket may have better ones; whoever decodes the chunk asks again.
type proof struct {
	span
	sum uint64 // xxHash64
}

// fetched is one GET's worth of a source.
type fetched struct {
	span
	mem []byte
	at  int64 // in the spool, if mem is nil
}

func newSources(d *Deps, cfg *Config) *sources {
	return &sources{classes: d.Classes, budget: d.Budget, dir: cfg.SpoolDir, byKey: make(map[string]*object), memory: cfg.FetchBytes}
}

// add plans one ref. With fetch its bytes will be at hand; without, only the ETag.
func (s *sources) add(r *catalog.Ref, fetch bool) error {
	src := s.byKey[r.Key]
	if src == nil {
		set, err := s.classes.Set(string(r.Class))
		if err != nil {
			return fmt.Errorf("source %s: %w", r.Key, err)
		}
		src = &object{set: set, key: r.Key, ready: make(chan struct{})}
		s.byKey[r.Key] = src
		s.list = append(s.list, src)
	}
	if fetch {
		chunk := span{r.Offset, r.Stored}
		src.want = append(src.want, chunk)
		if len(src.set) > 1 {
			src.proofs = append(src.proofs, proof{chunk, r.Sum})
		}
	}
	return nil
}

// coalesce joins spans into as few GETs as gaps and sizes allow, one chunk at least
// in each.
func coalesce(want []span) []*fetched {
	slices.SortFunc(want, func(a, b span) int { return int(min(1, max(-1, a.off-b.off))) })
	var out []*fetched
	for _, w := range want {
		if k := len(out) - 1; k >= 0 {
			last := out[k]
			if w.end() <= last.end() {
				continue
			}
			if w.off-last.end() <= gapMax && w.end()-last.off <= windowBytes {
				last.n = w.end() - last.off
				continue
			}
		}
		out = append(out, &fetched{span: w})
	}
	return out
}

// fetchAll reads every source, a few at a time, in the order of the batch. A
// source that fails tells whoever asks for it; the others go on.
func (s *sources) fetchAll(ctx context.Context, fetches int) {
	var g errgroup.Group
	g.SetLimit(fetches)
	for _, src := range s.list {
		g.Go(func() error {
			defer close(src.ready)
			src.err = s.fetch(ctx, src)
			return nil
		})
	}
	_ = g.Wait() // its functions return nil: errors are the sources'
}

// fetch reads a source from the first bucket of its set that has it whole.
func (s *sources) fetch(ctx context.Context, src *object) error {
	src.ranges = coalesce(src.want)
	if len(src.ranges) == 0 {
		if src.etag != "" {
			return nil // its footer was read under this one
		}
		if err := spend(ctx, s.budget, 0, 1); err != nil {
			return err
		}
		info, err := src.set.First().Head(ctx, src.key) // all of it moves server-side
		src.etag = info.ETag
		return err
	}
	var errs []error
	for i, store := range src.set {
		err := s.fetchFrom(ctx, store, src)
		if err == nil && i > 0 {
			// What is copied within the store is copied from the first, under its ETag.
			info, herr := src.set.First().Head(ctx, src.key)
			if src.etag = ""; herr == nil {
				src.etag = info.ETag
			}
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		errs = append(errs, err)
		s.forget(src)
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

func (s *sources) fetchFrom(ctx context.Context, store *objstore.Store, src *object) error {
	src.etag = ""
	for _, f := range src.ranges {
		if err := spend(ctx, s.budget, f.n, 1); err != nil {
			return err
		}
		b, info, err := store.ReadRange(ctx, src.key, f.off, f.n)
		if err != nil {
			return err
		}
		if src.etag != "" && info.ETag != src.etag {
			return &objstore.Error{Op: "get", Key: src.key, Kind: objstore.ErrPrecondition, Err: errors.New("the object changed while it was read")}
		}
		src.etag = info.ETag
		if err := src.prove(f, b, store.Name()); err != nil {
			return err
		}
		if err := s.keep(f, b); err != nil {
			return err
		}
	}
	return nil
}

// prove holds the chunks within a fetched range against their digests.
func (o *object) prove(f *fetched, b []byte, where string) error {
	for _, p := range o.proofs {
		if p.off < f.off || p.end() > f.end() {
			continue
		}
		if got := xxhash.Sum64(b[p.off-f.off:][:p.n]); got != p.sum {
			return segment.InFile(&segment.CorruptionError{
				Offset: p.off, Reason: fmt.Sprintf("stored bytes in %s have digest %016x, %016x wanted", where, got, p.sum),
			}, o.key, 0)
		}
	}
	return nil
}

// await waits until a source is fetched.
func (s *sources) await(ctx context.Context, key string) (*object, error) {
	src := s.byKey[key]
	if src == nil {
		return nil, fmt.Errorf("source %s was not planned", key)
	}
	select {
	case <-src.ready:
		return src, src.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// stored gives the stored bytes that a ref's chunk has in its source. They are
// shared: nobody changes them.
func (s *sources) stored(ctx context.Context, r *catalog.Ref) ([]byte, error) {
	src, err := s.await(ctx, r.Key)
	if err != nil {
		return nil, err
	}
	i, ok := slices.BinarySearchFunc(src.ranges, r.Offset, func(f *fetched, off int64) int {
		switch {
		case f.end() <= off:
			return -1
		case f.off > off:
			return 1
		}
		return 0
	})
	if !ok || src.ranges[i].end() < r.Offset+r.Stored {
		return nil, fmt.Errorf("source %s: %d bytes at %d were not planned", r.Key, r.Stored, r.Offset)
	}
	f := src.ranges[i]
	if f.mem != nil {
		lo := r.Offset - f.off
		return f.mem[lo : lo+r.Stored : lo+r.Stored], nil
	}
	b := make([]byte, r.Stored)
	if _, err := s.spool.ReadAt(b, f.at+r.Offset-f.off); err != nil {
		return nil, fmt.Errorf("read fetched bytes back from the spool: %w", err)
	}
	return b, nil
}
