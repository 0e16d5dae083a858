package localtier

import (
	"context"
	"errors"

	"github.com/strandline/strandline/localtier/wal"
)

// housekeepLoop unlinks local segments wholly below CHECKPOINT, which stands only
// at what was absorbed in order (K22). There are no local cursors yet that hold
// any back.
func (s *shardLog) housekeepLoop(ctx context.Context) {
	for pause(ctx, s.cfg.Housekeeping) {
		s.housekeep(ctx)
	}
}

func (s *shardLog) housekeep(ctx context.Context) {
	removed, err := s.wal.Housekeep(ctx, wal.NoFloor)
	if n := len(removed); n > 0 {
		s.index.forget(removed[n-1])
		s.log.Debug("unlinked local segments", "chain", s.chain.String(), "segments", n, "through", removed[n-1])
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, wal.ErrClosed) {
		s.note("housekeeping", err)
	}
}
