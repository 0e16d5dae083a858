//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/segment"
)

// dryWithin bounds how long the duties need until nothing waits: graces, and the leases of
// an auditor that was killed.
const dryWithin = 90 * time.Second

// drained returns once all that was acknowledged is published and everybody has seen it.
func (r *run) drained(ctx context.Context) error {
	for _, w := range r.fleet.writers {
		c, err := caller(w)
		if err != nil {
			return err
		}
		if err := c.Flush(ctx); err != nil {
			return fmt.Errorf("flush at %s: %w", w.Name, err)
		}
	}
	for _, f := range r.followers {
		last := r.lastOf(f.stream)
		err := child.Poll(ctx, goOnWithin, fmt.Sprintf("%s sees seq %d of %s", f.who, last, f.stream), func() (bool, error) {
			return f.last() >= last, fmt.Errorf("it is at seq %d", f.last())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) lastOf(stream string) segment.Seq {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	s := r.ledger.streams[stream]
	b := s.acked[len(s.acked)-1]
	return b.seq + segment.Seq(b.rows) - 1
}

// finish stops the writers, lets the duties run dry, and judges.
func (r *run) finish(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"consumers", r.consumeAll},
		{"stop", r.stop},
		{"dry", r.runDry},
		{"rows", r.judgeStreams},
		{"shards", r.judgeShards},
		{"otlp", r.judgeSenders},
		{"readers", func(context.Context) error {
			return errors.Join(r.fleet.readers[0].Stop(), r.fleet.readers[1].Stop())
		}},
		{"logs", r.judgeLogs},
	} {
		begun := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		r.report.note("%-9s done in %v", step.what, time.Since(begun).Round(10*time.Millisecond))
	}
	return nil
}

// consumeAll has every consumer see the end of its shard.
func (r *run) consumeAll(ctx context.Context) error {
	for _, c := range r.consumers {
		err := child.Poll(ctx, goOnWithin, fmt.Sprintf("the consumer of shard %d reads to the end", c.shard), func() (bool, error) {
			n, err := c.round(ctx)
			return n == 0 && err == nil, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stop ends writers and the auditor that lives, gracefully.
func (r *run) stop(context.Context) error {
	var g errgroup.Group
	for _, w := range r.fleet.writers {
		g.Go(w.Stop)
	}
	return errors.Join(g.Wait(), r.auditor.Stop())
}

// runDry runs the duties until fsck finds that nothing waits any more.
func (r *run) runDry(ctx context.Context) error {
	return child.Poll(ctx, dryWithin, "the duties run dry and fsck is clean", func() (bool, error) {
		if _, err := r.site.Run(ctx, append(auditFlags, "--once", "--linger", "8s")...); err != nil {
			return false, err
		}
		out, err := r.site.Run(ctx, "fsck", "--settled")
		if err != nil {
			err = fmt.Errorf("%w\n%.3000s", err, out)
		}
		return err == nil, err
	})
}

// judgeStreams reads every stream from the bucket, and by a reader, against the ledger.
func (r *run) judgeStreams(ctx context.Context) error {
	for _, list := range r.streams {
		for _, name := range list {
			read, err := r.cat(ctx, name)
			if err != nil {
				return err
			}
			if err := r.judgeStream(ctx, name, read); err != nil {
				return err
			}
		}
	}
	r.report.Rows, r.report.Shared = r.ledger.local+r.ledger.shared, r.ledger.shared
	r.report.note("%d rows acknowledged, %d of them as shared; %d are missing that the lost disk had", r.report.Rows, r.report.Shared, r.report.Excused)
	return nil
}

func (r *run) judgeStream(ctx context.Context, name string, read []row) error {
	v := r.ledger.judge(name, read)
	r.report.Excused += v.excused
	served, err := r.byReader(ctx, name)
	if err != nil {
		return err
	}
	v.faults = append(v.faults, same("a reader", name, served, read)...)
	for _, f := range r.followers {
		if f.stream == name {
			v.faults = append(v.faults, same(f.who, name, f.seen, read)...)
		}
	}
	for _, fault := range v.faults {
		r.ledger.complain("%s", fault)
	}
	// The judge must see one row that is missing. A row that was never acknowledged proves
	// nothing; the last one was.
	if n := len(read); n > 0 && len(r.ledger.judge(name, slices.Delete(slices.Clone(read), n-1, n)).faults) == 0 {
		r.ledger.complain("the judge does not see that the last row of %s is missing", name)
	}
	return nil
}

// cat reads a stream from the bucket.
func (r *run) cat(ctx context.Context, stream string) ([]row, error) {
	out, err := r.site.Run(ctx, "cat", stream, "--ndjson")
	if err != nil {
		return nil, err
	}
	return decode(out)
}

func (r *run) byReader(ctx context.Context, stream string) (out []row, err error) {
	for x, err := range r.atReaders.Rows(ctx, stream, client.ReadOptions{}) {
		if err != nil {
			return nil, fmt.Errorf("a reader, stream %s: %w", stream, err)
		}
		out = append(out, row{x.Stream, x.Seq, string(x.Payload)})
	}
	return out, nil
}

// judgeShards reads every shard from the bucket, and holds its consumer against it.
func (r *run) judgeShards(ctx context.Context) error {
	for _, c := range r.consumers {
		out, err := r.site.Run(ctx, "scan", fmt.Sprint(c.shard), "--ndjson")
		if err != nil {
			return err
		}
		chain, err := decode(out)
		if err != nil {
			return err
		}
		for _, fault := range judgeConsumer(c.shard, c.seen, chain, slices.Contains(shardsOf(victim), c.shard)) {
			r.ledger.complain("%s", fault)
		}
	}
	return nil
}

func (r *run) judgeSenders(ctx context.Context) error {
	for _, s := range r.senders {
		read, err := r.cat(ctx, s.service)
		if err != nil {
			return err
		}
		sent := int(s.sent.Load())
		r.report.Records += sent
		r.report.note("%s: %d records taken, %d in the bucket", s.service, sent, len(read))
		for _, fault := range judgeSent(s.service, sent, read) {
			r.ledger.complain("%s", fault)
		}
	}
	return nil
}

// kill ends whatever still runs.
func (f *fleet) kill() error {
	var errs []error
	for _, list := range [][]*Process{f.writers[:], f.auditors[:], f.readers[:]} {
		for _, p := range list {
			if p != nil {
				errs = append(errs, p.Kill())
			}
		}
	}
	return errors.Join(errs...)
}
