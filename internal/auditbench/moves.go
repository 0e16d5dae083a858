package auditbench

import (
	"context"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/probe"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
	"github.com/strandline/strandline/settle"
)

const (
	// noiseBytes of a row, noiseRows of a call: what does not compress makes chunks of
	// 8 MiB stored, which a store can copy by itself.
	noiseBytes, noiseRows = 64 << 10, 16
	// trimmedTenths of the object's rows die: more than half, and within a chunk.
	trimmedTenths = 6
	movedStream   = "noise/gc"
	filledStream  = "noise/tail-fill"
)

// shift is one round of a policy.
type shift struct {
	spent
	moved
}

// movesPart rewrites objects of large chunks: gc of one mostly dead, tail-fill of two.
func (b *bench) movesPart(ctx context.Context, r *Report) error {
	all := map[string][]shift{}
	for round := range b.o.Rounds {
		for _, p := range []struct {
			policy catalog.Duty
			owe    func(ctx context.Context, t *tier, s *settle.Settler, a *author) error
		}{{catalog.DutyGC, b.oweGC}, {catalog.DutyTailFill, b.oweTailFill}} {
			name := string(p.policy)
			b.step("%s", name)
			a := newAuthor(time.Now)
			err := b.within(ctx, fmt.Sprintf("moves-%s-%d", name, round), a, func(t *tier) error {
				s, err := t.settler(settle.Config{})
				if err == nil {
					err = p.owe(ctx, t, s, a)
				}
				if err != nil {
					return err
				}
				var one shift
				one.spent, err = t.measure(func() (err error) {
					one.moved, err = t.markers(ctx, s, p.policy)
					return err
				})
				if err == nil && one.runs != 1 {
					err = fmt.Errorf("%d rewrites, want one", one.runs)
				}
				all[name] = append(all[name], one)
				return err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for _, d := range []catalog.Duty{catalog.DutyGC, catalog.DutyTailFill} {
		r.Moves = append(r.Moves, sumMoves(string(d), all[string(d)]))
	}
	return nil
}

// noise settles an object of a stream, of about so many stored bytes.
func (b *bench) noise(ctx context.Context, t *tier, s *settle.Settler, a *author, stream string, bytes int64) error {
	for left := bytes; left > 0; left -= segmentBytes {
		var calls []call
		for n := min(left, segmentBytes); n > 0; n -= noiseRows * noiseBytes {
			calls = append(calls, call{stream: stream, rows: noiseRows, size: noiseBytes})
		}
		slot, err := a.seal(calls)
		if err != nil {
			return err
		}
		if err := t.publish(ctx, slot); err != nil {
			return err
		}
	}
	_, err := t.settle(ctx, s)
	return err
}

// oweGC makes an object of which the first rows are trimmed, and lets its reap-check find it.
func (b *bench) oweGC(ctx context.Context, t *tier, s *settle.Settler, a *author) error {
	first := a.next
	if err := b.noise(ctx, t, s, a, movedStream, b.o.Move); err != nil {
		return err
	}
	live := first + (a.next-first)*trimmedTenths/10
	if _, err := t.db.TrimStream(ctx, movedStream, segment.Pos{Epoch: a.chain.Epoch, Seq: live}); err != nil {
		return err
	}
	if err := t.teardown(ctx); err != nil {
		return err
	}
	t.clock.advance(readGrace)
	due, err := t.take(ctx, catalog.DutyReapCheck)
	if err != nil {
		return err
	}
	least := min(probe.DefaultGCLeast, b.o.Move/4)
	results := reap.New(t.cat, t.classes, orphan.NewDeleter(t.classes), least).RunOnce(ctx, due)
	for _, res := range results {
		if res.Err != nil {
			return res.Err
		}
	}
	if len(results) != 1 || results[0].Outcome != reap.ArmedGC {
		return fmt.Errorf("reap-checks after the trim: %+v, want one that arms a gc", results)
	}
	return nil
}

// oweTailFill makes a tail object, and one after it that is worth folding into it.
func (b *bench) oweTailFill(ctx context.Context, t *tier, s *settle.Settler, a *author) error {
	for range 2 {
		if err := b.noise(ctx, t, s, a, filledStream, b.o.Move/4); err != nil {
			return err
		}
	}
	return nil
}

func sumMoves(policy string, all []shift) Move {
	m := Move{Policy: policy}
	for _, s := range all {
		m.see(s.spent)
		m.Bytes, m.ThroughBytes, m.ServerSideBytes = s.stored, s.through, s.serverSide
		m.PutLike, m.Gets = s.requests.PutLike(), s.gets()
	}
	m.ServerSideShare = over(float64(m.ServerSideBytes), float64(m.ServerSideBytes+m.ThroughBytes))
	m.CPUSeconds = median(all, func(s shift) float64 { return s.cpuSeconds })
	m.MBPerSecond = over(float64(m.Bytes)/1e6, median(all, func(s shift) float64 { return s.seconds }))
	return m
}
