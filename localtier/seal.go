package localtier

import (
	"context"
	"errors"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// The log seals by size and age. Two more reasons are known here only: a shared
// acknowledgement that waits, and a segment with very many streams.

// wantSeal asks for segment id to be sealed within the shared window.
func (s *shardLog) wantSeal(id segment.ID) {
	s.sealMu.Lock()
	wanted := s.sealWanted < id
	if wanted {
		s.sealWanted = id
	}
	s.sealMu.Unlock()
	if wanted {
		select {
		case s.sealSoon <- struct{}{}:
		default: // the loop is about to look anyway
		}
	}
}

// wantSealNow asks for the open segment to be sealed at once.
func (s *shardLog) wantSealNow() {
	select {
	case s.sealAtOnce <- struct{}{}:
	default:
	}
}

func (s *shardLog) sealLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.sealAtOnce:
			s.seal(ctx)
		case <-s.sealSoon:
			if !pause(ctx, s.cfg.SharedWindow) {
				return
			}
			s.sealMu.Lock()
			id := s.sealWanted
			s.sealMu.Unlock()
			// Sealed by size or age meanwhile: the rows wait for nothing.
			if st := s.wal.State(); st.Open && st.Segment <= id {
				s.seal(ctx)
			}
		}
	}
}

func (s *shardLog) seal(ctx context.Context) {
	_, err := s.wal.Seal(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, wal.ErrClosed) {
		s.note("seal a segment", err)
	}
}
