package drive

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// recovered is what the recovery drive read back.
type recovered struct {
	acked   []event // acknowledged before the kill, in the order of the calls
	global  []event // the shard's rows after the restart
	scoped  map[string][]event
	ack     segment.Seq // the consumer's acknowledgement before the kill
	cursor  segment.Seq // its cursor after the restart
	pending []event     // what it is given next
	next    segment.Seq // what the first append after the restart got
}

// runRecovery: append, acknowledge a consumer's first third, kill, restart on the same
// disk. Nothing is published before the kill: all that comes back comes from the disk.
func runRecovery(ctx context.Context, o *Options, s *site) *Report {
	seen, err := observeRecovery(ctx, o, s)
	return &Report{
		Figures: []Figure{{"appended", int64(len(seen.acked))}, {"pending_after_restart", int64(len(seen.pending))}},
		Claims:  seen.judge(), Stopped: err,
	}
}

func observeRecovery(ctx context.Context, o *Options, s *site) (seen recovered, err error) {
	streams := executions(1, 2)
	r, err := s.start(ctx, "0", false, 0)
	if err != nil {
		return seen, err
	}
	if seen.acked, err = r.append(ctx, makeEvents(o.Events, streams)); err != nil {
		return seen, err
	}
	if _, err := r.CreateConsumer(ctx, 0, o.Consumer, 0); err != nil {
		return seen, err
	}
	ack := seen.acked[len(seen.acked)/3-1].Seq
	if _, err := r.Ack(ctx, 0, o.Consumer, ack); err != nil {
		return seen, err
	}
	seen.ack = ack
	if err := r.kill(ctx); err != nil {
		return seen, err
	}
	if err := s.at(ctx, "killed", s); err != nil {
		return seen, err
	}
	if r, err = s.start(ctx, "0", false, 0); err != nil {
		return seen, err
	}
	return seen, seen.read(ctx, r, streams, o.Consumer)
}

func (seen *recovered) read(ctx context.Context, r *replica, streams []string, consumer string) (err error) {
	if seen.global, err = localRows(r.ReadShard(ctx, 0, 1, 0)); err != nil {
		return fmt.Errorf("read the shard back: %w", err)
	}
	seen.scoped = map[string][]event{}
	for _, name := range streams {
		if seen.scoped[name], err = streamRows(name, r.Read(ctx, name, 1, 0)); err != nil {
			return fmt.Errorf("read %s back: %w", name, err)
		}
	}
	if seen.cursor, err = r.cursorOf(ctx, 0, consumer); err != nil {
		return err
	}
	rows, err := r.Pull(ctx, 0, consumer, MaxEvents)
	if err != nil {
		return fmt.Errorf("pull what is pending: %w", err)
	}
	for i := range rows {
		seen.pending = append(seen.pending, eventOf(rows[i].Stream, &rows[i].Row))
	}
	res, err := r.Append(ctx, streams[0], []segment.Row{{Payload: []byte("after the restart")}}, localtier.AckLocal)
	if err != nil {
		return fmt.Errorf("append after the restart: %w", err)
	}
	seen.next = res.First
	return nil
}

// judge is pure: what was read back against what was acknowledged.
func (seen *recovered) judge() []Claim {
	return []Claim{
		{"zero_loss", seen.zeroLoss()},
		{"ordering_ok", seen.ordering()},
		{"scope_ok", seen.scope()},
		{"payloads_match", seen.payloads()},
		{"cursor_survived", seen.cursorSurvived()},
		{"pending_ok", same("pending", from(seen.acked, seen.ack+1), seen.pending)},
	}
}

// zeroLoss: every acknowledged event stands at its seq, in its stream.
func (seen *recovered) zeroLoss() error {
	if len(seen.acked) == 0 {
		return fmt.Errorf("nothing was acknowledged")
	}
	there := map[segment.Seq]string{}
	for _, e := range seen.global {
		there[e.Seq] = e.Stream
	}
	for _, e := range seen.acked {
		if stream, ok := there[e.Seq]; !ok || stream != e.Stream {
			return fmt.Errorf("%s is gone", e)
		}
	}
	return nil
}

// ordering: seqs are 1, 2, 3 …, also across the restart.
func (seen *recovered) ordering() error {
	if err := gapless("the shard", seen.global, 1, segment.Seq(len(seen.global))); err != nil {
		return err
	}
	if want := segment.Seq(len(seen.global)) + 1; seen.next != want {
		return fmt.Errorf("the first append after the restart got seq %d, not %d", seen.next, want)
	}
	return nil
}

// scope: each stream's read gives that stream's seqs and no other.
func (seen *recovered) scope() error {
	if len(seen.scoped) == 0 {
		return fmt.Errorf("no stream was read")
	}
	for name, got := range seen.scoped {
		want := ofStream(seen.acked, name)
		if len(want) != len(got) || len(want) == 0 {
			return fmt.Errorf("stream %s: %d rows, acknowledged were %d", name, len(got), len(want))
		}
		for i := range want {
			if want[i].Seq != got[i].Seq {
				return fmt.Errorf("stream %s: row %d is seq %d, not %d", name, i, got[i].Seq, want[i].Seq)
			}
		}
	}
	return nil
}

// payloads: what is there is what was sent, byte for byte.
func (seen *recovered) payloads() error {
	sent := map[segment.Seq]event{}
	for _, e := range seen.acked {
		sent[e.Seq] = e
	}
	if len(seen.global) == 0 {
		return fmt.Errorf("nothing was read")
	}
	for _, got := range seen.global {
		want, ok := sent[got.Seq]
		if !ok || got.Payload != want.Payload || got.Txn != want.Txn || got.Time != want.Time {
			return fmt.Errorf("%s is not what was sent: %s", got, want)
		}
	}
	return nil
}

func (seen *recovered) cursorSurvived() error {
	if seen.ack == 0 || seen.cursor != seen.ack {
		return fmt.Errorf("the cursor is %d, acknowledged was %d", seen.cursor, seen.ack)
	}
	return nil
}
