package localtier

import (
	"context"
	"errors"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// pressureLook is how often a disk that fills up is looked for between two
// housekeepings: its writers may fill Config.MinFreeDisk within one of them.
const pressureLook = 5 * time.Second

// housekeepLoop unlinks local segments that lie wholly below CHECKPOINT, which stands
// only at what was absorbed in order (K22), and below what is held for consumers and
// readers.
func (s *shardLog) housekeepLoop(ctx context.Context) {
	last := s.now()
	for pause(ctx, min(s.cfg.Housekeeping, pressureLook)) {
		if s.now().Sub(last) >= s.cfg.Housekeeping || s.pressed() {
			s.housekeep(ctx)
			last = s.now()
		}
	}
}

func (s *shardLog) housekeep(ctx context.Context) {
	// A reader that begins after this look and loses its segment is sent to the bucket.
	removed, err := s.wal.Housekeep(ctx, s.retainFloor())
	if n := len(removed); n > 0 {
		s.index.forget(removed[n-1])
		s.log.Debug("unlinked local segments", "chain", s.chain.String(), "segments", n, "through", removed[n-1])
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, wal.ErrClosed) {
		s.note("housekeeping", err)
	}
}

// retainFloor is the first segment that housekeeping leaves where it is.
func (s *shardLog) retainFloor() segment.ID {
	return planFloor(floorInput{
		sealed: s.wal.Sealed(), consumers: s.carried.consumers(), reader: s.index.holds.lowest(),
		keepAll: s.cfg.HydrateAll, holdMax: s.cfg.ConsumerHoldMax, pressed: s.pressed(),
	})
}

// pressed says that the disk is so full that appends will soon be refused.
func (s *shardLog) pressed() bool {
	free, err := s.disk.left()
	// A disk that does not answer is no reason to give up what is held; appends ask it
	// too, and say so.
	return err == nil && free < 2*s.cfg.MinFreeDisk
}
