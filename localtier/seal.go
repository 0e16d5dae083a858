package localtier

import (
	"context"
	"errors"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// The log seals by size and age. Two more reasons are known here only: a shared
// acknowledgement that waits, and a segment with very many streams.

// wantSeal asks for segment id to be sealed within the shared window.
func (s *shardLog) wantSeal(id segment.ID) {
	s.sealMu.Lock()
	defer s.sealMu.Unlock()
	if s.sealWanted >= id {
		return
	}
	s.sealWanted = id
	select {
	case s.sealSoon <- struct{}{}:
		s.sealBy = time.Now().Add(s.cfg.SharedWindow)
	default: // the loop is about to look anyway
	}
}

// sealsBy is when who asked first is to be served.
func (s *shardLog) sealsBy() time.Time {
	s.sealMu.Lock()
	defer s.sealMu.Unlock()
	return s.sealBy
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
			if !s.sealWindow(ctx, s.sealsBy()) {
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

// sealWindow waits for company, and seals at once what cannot wait: asked for after the
// window it would be another segment.
func (s *shardLog) sealWindow(ctx context.Context, end time.Time) bool {
	t := time.NewTimer(time.Until(end))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-s.sealAtOnce:
			s.seal(ctx)
		case <-t.C:
			return true
		}
	}
}

func (s *shardLog) seal(ctx context.Context) {
	_, err := s.wal.Seal(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, wal.ErrClosed) {
		s.note("seal a segment", err)
	}
}
