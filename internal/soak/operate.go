//go:build unix

package soak

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/segment"
)

// operator trims, deletes, and makes and removes consumers, with the command.
type operator struct {
	*run
	rng    *rand.Rand
	extra  []string // consumers it made: shard/name
	number int
}

func (r *run) operate(ctx context.Context) error {
	o := &operator{run: r, rng: r.rng(2)}
	names := r.ledger.names()
	for child.Pause(ctx, time.Duration(500+o.rng.IntN(2500))*time.Millisecond) {
		var err error
		switch n := o.rng.IntN(10); {
		case n < 5:
			err = o.trim(ctx, names[o.rng.IntN(len(names))])
		case n < 7:
			err = o.remove(ctx, names[o.rng.IntN(len(names))])
		case n < 9 && len(o.extra) < 3:
			err = o.addConsumer(ctx)
		default:
			err = o.dropConsumer(ctx)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// command runs one and judges how it ended: well, or by what our faults explain.
func (r *run) command(ctx context.Context, args ...string) (code int, err error) {
	_, p, err := r.site.run(ctx, args[0], r.site.with(args...)...)
	if err != nil {
		return -1, err
	}
	switch code = p.Code(); code {
	case exitOK, exitUnavailable:
	default:
		if !explained(p.Said()) {
			r.complain("strandline %s: %v", strings.Join(args, " "), &child.EndedError{Process: p})
		}
	}
	return code, nil
}

// explained are refusals that name what happened meanwhile.
func explained(said string) bool {
	for _, text := range []string{
		"trimmed", "deleted", "no such stream", "went on without", "tip", "not owner", "owned by", "is served by", "fenced",
		"no-such-consumer",
	} { // made since the last published slot, and gone with the disk
		if strings.Contains(said, text) {
			return true
		}
	}
	return false
}

// trim gives up what lies before some row.
func (o *operator) trim(ctx context.Context, stream string) error {
	e, ok := o.ledger.anEntry(stream, o.rng.Float64())
	if !ok {
		return nil
	}
	o.ledger.asks(stream, e.seq)
	code, err := o.command(ctx, "trim", stream, fmt.Sprint(e.seq))
	if err != nil {
		return err
	}
	s, err := o.resolve(ctx, stream)
	if code == exitOK && s.LiveFrom.Seq < e.seq {
		o.complain("I6: trim of %s to %d is answered as done, live_from is %d", stream, e.seq, s.LiveFrom.Seq)
	}
	return err
}

// remove deletes a stream. Its producer does not know, and goes on above.
func (o *operator) remove(ctx context.Context, stream string) error {
	o.ledger.asks(stream, math.MaxUint64)
	_, err := o.command(ctx, "rm", stream)
	if err != nil {
		return err
	}
	s, err := o.resolve(ctx, stream)
	if err != nil {
		return err
	}
	row, err := o.chain(ctx, segment.ShardOf(stream, shards))
	if err == nil && s.LiveFrom.Seq > row.NextSeq {
		o.complain("loss: rm of %s gave up rows below %d, the chain's next seq is %d: rows to come are gone", stream, s.LiveFrom.Seq, row.NextSeq)
	}
	return err
}

// resolve looks where a stream begins now, whatever became of the command.
func (o *operator) resolve(ctx context.Context, stream string) (s catalog.Stream, err error) {
	err = child.Poll(ctx, startTimeout, "read a stream's row", func() (bool, error) {
		s, err = o.site.catalog.Stream(ctx, stream)
		return err == nil, err
	})
	if err == nil {
		o.ledger.gave(stream, s.LiveFrom.Seq)
	}
	return s, err
}

func (o *operator) addConsumer(ctx context.Context) error {
	s := segment.Shard(o.rng.IntN(shards))
	o.number++
	name := fmt.Sprintf("late-%d", o.number)
	if err := o.createConsumer(ctx, s, name); err != nil {
		return err
	}
	o.extra = append(o.extra, fmt.Sprintf("%d/%s", s, name))
	// The command pulls, too, where the shard is served now.
	_, err := o.command(ctx, "consumers", "pull", fmt.Sprint(s), name, "--limit", "50")
	return err
}

// dropConsumer removes one that it made. If nobody serves the shard now, a later one may.
func (o *operator) dropConsumer(ctx context.Context) error {
	if len(o.extra) == 0 {
		return nil
	}
	key := o.extra[0]
	shard, name, _ := strings.Cut(key, "/")
	o.ledger.leaving(key)
	code, err := o.command(ctx, "consumers", "rm", shard, name)
	if code == exitOK || code == exitFailed {
		o.extra = o.extra[1:] // a taker may never have heard of it
	}
	return err
}
