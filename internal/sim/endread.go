package sim

import (
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// readBack reads every stream through.
func (s *Sim) readBack() error {
	p, err := s.endProcess(nil)
	if err != nil {
		return err
	}
	defer p.end()
	r, err := p.newReader(7)
	if err != nil {
		return err
	}
	for _, stream := range streamNames {
		if err := p.readThrough(r, stream); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) readThrough(r *coldload.Reader, stream string) error {
	k := p.sim.check
	for from, tip := (segment.Pos{}), len(k.model.stream(stream).at); ; {
		var rows []got
		var end error
		for row, err := range r.Rows(p.ctx, stream, from, segment.Pos{}) {
			if err != nil {
				end = err
				break
			}
			rows = append(rows, got{row.Pos(), segment.RowSum(row.Row)})
		}
		loss, on := acceptedLoss(end)
		switch {
		case on, end == nil:
		case errors.Is(end, catalog.ErrNotFound), errors.Is(end, coldload.ErrDeleted):
			end = nil // then no row of it is live
		default:
			return fmt.Errorf("stream %q: %w", stream, end)
		}
		k.read(p, stream, from, tip, rows, end)
		if !on || k.broken() {
			return nil
		}
		k.behindLoss(p, loss)
		from = loss.First
	}
}

// kept is I1 for all that was ever acknowledged: it is in the history, unless it was
// acknowledged as local on a disk that is lost.
func (k *checker) kept() {
	for _, r := range k.model.records {
		switch {
		case r.acked == "" || r.inHistory:
		case k.sim.back.happened() && k.voided[r.chain]:
			k.sim.cover.hitLocked(k.sim, "row lost in a void slot")
		case k.sim.back.happened() && k.rows[r.chain].Chain != r.chain:
			// Its epoch was forgotten, which every writer and fsck tell.
			k.sim.cover.hitLocked(k.sim, "row lost with its epoch")
		case r.acked == localtier.AckLocal && r.life != r.machine.life:
			k.sim.cover.hitLocked(k.sim, "row lost with its disk")
		default:
			k.violated("I1", "%q of %q, acknowledged as %s at %s seq %d by %s, is nowhere", short(r.payload), r.stream, r.acked, r.chain, r.seq, r.machine.name)
		}
	}
}
