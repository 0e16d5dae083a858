//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/segment"
)

const (
	victim = 1 // the writer whose disk is lost
	// cutTime is how long a server is away: a part of it silent, then refused. It outlasts a
	// writer's lease.
	cutTime = 5 * time.Second
	// goOnWithin bounds how long anybody may take to go on after a fault.
	goOnWithin = 45 * time.Second
)

// window is a time in which errors of duties are to be expected.
type window struct{ from, to time.Time }

// faults strikes one fault after the other, each under load, and each once all goes on after
// the one before.
func (r *run) faults(ctx context.Context) error {
	for _, f := range []struct {
		what   string
		strike func(context.Context) error
	}{
		{"start", func(context.Context) error { return nil }},
		{"disk", r.diskFault},
		{"auditor", r.auditorFault},
		{"bucket", func(ctx context.Context) error { return r.cut(ctx, "bucket", r.site.Bucket) }},
		{"catalog", func(ctx context.Context) error { return r.cut(ctx, "catalog", r.site.Catalog) }},
	} {
		if err := f.strike(ctx); err != nil {
			return fmt.Errorf("%s: %w", f.what, err)
		}
		over := time.Now()
		if err := r.goesOn(ctx); err != nil {
			return fmt.Errorf("after the fault %q: %w", f.what, err)
		}
		r.report.note("%-8s all went on within %v; calls that had to wait: %v", f.what, time.Since(over).Round(10*time.Millisecond), r.waits.take())
		child.Pause(ctx, r.opts.Hold)
	}
	return nil
}

// diskFault kills a writer, deletes its disk, and has a new one take its shards over.
func (r *run) diskFault(ctx context.Context) error {
	kept, err := r.fleet.loseDisk(victim)
	if err != nil {
		return err
	}
	r.ledger.losing(shardsOf(victim))
	if kept == 0 {
		return errors.New("the lost disk had nothing on it")
	}
	killed := time.Now()
	if err := r.fleet.startWriter(ctx, victim); err != nil {
		return err
	}
	r.report.note("disk     %d bytes lost, taken over after %v, %d starts met the lease", kept, time.Since(killed).Round(10*time.Millisecond), r.fleet.held)
	return nil
}

// auditorFault kills the auditor that settled more.
func (r *run) auditorFault(ctx context.Context) error {
	var done [2]int
	for i, a := range r.fleet.auditors {
		n, err := settles(ctx, a)
		if err != nil {
			return err
		}
		done[i] = n
	}
	dead := 0
	if done[1] > done[0] {
		dead = 1
	}
	if done[dead] == 0 {
		return errors.New("no auditor has done anything that its death could break")
	}
	r.auditor = r.fleet.auditors[1-dead]
	return r.fleet.auditors[dead].Kill()
}

// cut takes a server away for a while.
func (r *run) cut(ctx context.Context, what string, g *Gate) error {
	w := window{from: time.Now()}
	defer func() { w.to = time.Now().Add(goOnWithin / 3); r.windows = append(r.windows, w) }()
	g.Silence()
	child.Pause(ctx, cutTime/2)
	g.Refuse()
	child.Pause(ctx, cutTime/2)
	g.Open()
	silent, refused := g.Hits()
	r.report.note("%-8s away for %v: %d sends met silence, %d a reset", what, time.Since(w.from).Round(10*time.Millisecond), silent, refused)
	if silent == 0 || refused == 0 {
		return fmt.Errorf("the cut was not met: %d sends met silence, %d a reset", silent, refused)
	}
	return nil
}

// goesOn returns once everybody does new work: each shard acknowledges, its consumer sees
// what was acknowledged, a reader serves it, and an auditor settles.
func (r *run) goesOn(ctx context.Context) error {
	base := r.ledger.counts()
	done, err := r.settled(ctx)
	if err != nil {
		return err
	}
	err = child.Poll(ctx, goOnWithin, "each shard acknowledges rows", func() (bool, error) {
		now := r.ledger.counts()
		for s := range segment.Shard(shards) {
			if now[s] <= base[s]+3 {
				return false, fmt.Errorf("shard %d: %d rows", s, now[s]-base[s])
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	for s := range segment.Shard(shards) {
		if err := r.served(ctx, s); err != nil {
			return err
		}
	}
	return child.Poll(ctx, goOnWithin, "an auditor settles", func() (bool, error) {
		now, err := r.settled(ctx)
		return now > done, err
	})
}

// settled counts the rounds of settle of the auditors that live.
func (r *run) settled(ctx context.Context) (n int, err error) {
	for _, a := range r.fleet.auditors {
		if a.Ended() {
			continue
		}
		m, err := settles(ctx, a)
		if err != nil {
			return 0, err
		}
		n += m
	}
	return n, nil
}

// served: the consumer and a reader have the shard's latest row, which the present owner
// acknowledged.
func (r *run) served(ctx context.Context, s segment.Shard) error {
	stream, last := r.ledger.tip(s)
	err := child.Poll(ctx, goOnWithin, fmt.Sprintf("the consumer of shard %d sees seq %d of %s", s, last, stream), func() (bool, error) {
		return r.consumers[s].saw(stream, last), nil
	})
	if err != nil {
		return err
	}
	return child.Poll(ctx, goOnWithin, fmt.Sprintf("a reader serves seq %d of %s", last, stream), func() (bool, error) {
		for x, err := range r.atReaders.Rows(ctx, stream, client.ReadOptions{From: fmt.Sprint(last), Limit: 1}) {
			return err == nil && x.Seq == last, err
		}
		return false, nil
	})
}

// bytesBelow are the bytes of a directory's files.
func bytesBelow(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
