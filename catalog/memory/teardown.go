package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// TrimStream raises a stream's live_from and arms its teardown.
func (c *Catalog) TrimStream(ctx context.Context, name string, pos segment.Pos) (catalog.Stream, error) {
	return c.trimStream(ctx, "TrimStream", name, func(s catalog.Stream) (catalog.Stream, error) {
		out, err := catalog.TrimStream(s, pos)
		if err == nil && c.skip[LiveFrom] {
			out.LiveFrom = pos
		}
		return out, err
	})
}

// DeleteStream trims through the tip and lists the stream as deleted.
func (c *Catalog) DeleteStream(ctx context.Context, name string) (catalog.Stream, error) {
	return c.trimStream(ctx, "DeleteStream", name, func(s catalog.Stream) (catalog.Stream, error) {
		return catalog.DeleteStream(s), nil
	})
}

func (c *Catalog) trimStream(ctx context.Context, verb, name string, decide func(catalog.Stream) (catalog.Stream, error)) (out catalog.Stream, err error) {
	err = c.write(ctx, verb, func(t *tx) error {
		have, err := t.streamNamed(name)
		if err != nil {
			return err
		}
		s := *have
		if out, err = decide(s.Stream); err != nil {
			return err
		}
		s.Stream = out
		t.putStream(&s)
		t.arm(catalog.DutyTeardown, catalog.StreamID(s.ID), "", 0)
		return nil
	})
	return out, err
}

// streamNamed is a stream by name.
func (t *tx) streamNamed(name string) (*streamRow, error) {
	s, ok := t.streamName.get(name)
	if !ok {
		return nil, fmt.Errorf("%w: stream %v", catalog.ErrNotFound, name)
	}
	return s, nil
}

// liveFrom is the effective live_from that a stream's newest chain gives it.
func (t *tx) liveFrom(s *streamRow) segment.Pos {
	c := segment.Chain{Epoch: s.Last.Epoch, Shard: s.lastShard}
	row, ok := t.chain.get(c)
	if !ok {
		return s.LiveFrom
	}
	return catalog.EffectiveLiveFrom(s.LiveFrom, c, row.WatermarkSeq)
}

// WalkStream returns the next page of a stream's dead refs. Retired ones are gone,
// so the next call goes on where this one ended.
func (c *Catalog) WalkStream(ctx context.Context, streamID int64, limit int) (w catalog.WalkPage, err error) {
	err = c.read(ctx, "WalkStream", func(t *tx) error {
		if err := t.checkKinds("WalkStream"); err != nil {
			return err
		}
		s, ok := t.stream.get(streamID)
		if !ok {
			return fmt.Errorf("%w: stream %v", catalog.ErrNotFound, streamID)
		}
		w.Stream, w.LiveFrom = s.Stream, t.liveFrom(s)
		return t.walk(&w, catalog.PageSize(limit))
	})
	if err != nil {
		return catalog.WalkPage{}, err
	}
	return w, nil
}

func (t *tx) walk(w *catalog.WalkPage, limit int) error {
	for k, r := range t.ref.from(refKey{stream: w.Stream.ID}) {
		if k.stream != w.Stream.ID {
			return nil
		}
		l, err := t.judged(r)
		if err != nil || w.Take(&l, limit) {
			return err
		}
	}
	return nil
}

// ArmWatchers arms what will look at the objects of refs that are about to go.
func (c *Catalog) ArmWatchers(ctx context.Context, refs []catalog.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	return c.write(ctx, "ArmWatchers", func(t *tx) error {
		if err := catalog.CheckKnown("ArmWatchers", refs); err != nil {
			return err
		}
		t.watchSettled(refs)
		return t.slotsDue(catalog.KeysOf(refs, (*catalog.Ref).IsSlot), false)
	})
}

// slotsDue makes the settle markers of slots due, those that still owe one.
// unnamed: only of slots that no ref names any more.
func (t *tx) slotsDue(keys []string, unnamed bool) error {
	if unnamed {
		keys = slices.DeleteFunc(keys, t.isNamed)
	}
	ids, err := catalog.SettleIDs(keys)
	if err != nil || len(ids) == 0 {
		return err
	}
	v := t.version()
	for _, id := range ids {
		have, ok := t.marker.get(markerKey{catalog.DutySettle, id})
		if !ok {
			continue
		}
		m := *have
		m.Version = v
		if t.now.Before(m.Due) {
			m.Due = t.now
		}
		t.putMarker(&m)
	}
	return nil
}

// RetireRefs deletes dead refs that stand as they were seen; others are left.
func (c *Catalog) RetireRefs(ctx context.Context, refs []catalog.Ref) (retired int, err error) {
	if len(refs) == 0 {
		return 0, nil
	}
	err = c.write(ctx, "RetireRefs", func(t *tx) error {
		if err := t.checkKinds("RetireRefs"); err != nil {
			return err
		}
		gone, err := t.retirable(refs)
		if err != nil {
			return err
		}
		for i := range gone {
			if have, ok := t.ref.get(keyOf(&gone[i])); ok {
				t.dropRef(have)
			}
		}
		retired = len(gone)
		// The refs are gone, so "no ref names it" is plain to see.
		return t.slotsDue(catalog.KeysOf(gone, (*catalog.Ref).IsSlot), true)
	})
	if err != nil {
		return 0, err
	}
	return retired, nil
}

// retirable asks which of the refs may go.
func (t *tx) retirable(seen []catalog.Ref) (gone []catalog.Ref, err error) {
	now := slices.Clone(seen)
	for i := range now {
		if have, ok := t.ref.get(keyOf(&now[i])); ok && t.skip[Retire] {
			now[i] = *have // whatever stands is what was seen
		}
	}
	gone = catalog.Retirable(now, func(r *catalog.Ref) *catalog.LiveRef {
		have, ok := t.ref.get(keyOf(r))
		if !ok {
			return nil // retired before
		}
		l, bad := t.judged(have)
		if t.skip[Retire] {
			l.LiveFrom = l.LastPos().Next() // or it would not be dead
		}
		err = errors.Join(err, bad)
		return &l
	})
	return gone, err
}
