package localtier

import (
	"context"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// fenceAttempts bounds how often one fence is sent again after unknown outcomes.
const fenceAttempts = 5

// fence is step 3: put a segment of SegmentStart and Seal at the next position and
// absorb it. From there the old owner's next publish meets it and stops. A closing one
// ends the chain.
func (s *shardLog) fence(ctx context.Context, row catalog.ChainRow, closing bool) (catalog.ChainRow, error) {
	for {
		if err := s.inherit(ctx, row); err != nil {
			return row, err
		}
		p, err := s.fenceParcel(row.AbsorbedEnd, row.NextSeq, row.LastUUID, row.Consumers)
		if err != nil {
			return row, err
		}
		p.closed = closing
		standing, err := s.placeFence(ctx, p)
		var taken *occupiedError
		if errors.As(err, &taken) || errors.Is(err, errVanished) {
			// The old owner was faster: its slot counts. Absorb it, and fence behind it with a
			// new segment, for this one names the wrong predecessor.
			if row, err = s.absorbStanding(ctx, row); err != nil || row.Closed {
				return row, s.endedMeanwhile(ctx, row, err, closing)
			}
			continue
		}
		if err != nil {
			return row, fmt.Errorf("place the fence: %w", err)
		}
		if err := s.at(StepFencePlaced); err != nil {
			return row, err
		}
		done, err := absorb.Commit(ctx, s.catalog, s.bucket, standing, s.caller())
		if err != nil {
			return row, s.takeoverError("absorb the fence", err)
		}
		return done.Chain, s.at(StepFenced)
	}
}

// endedMeanwhile is what a fence that met the chain's end comes to.
func (s *shardLog) endedMeanwhile(ctx context.Context, row catalog.ChainRow, err error, closing bool) error {
	if err != nil || closing {
		return err
	}
	return s.leaveClosed(ctx, row)
}

// placeFence sends the same fence again while its outcome is unknown: its UUID is
// only in memory, and a second one could meet the first.
func (s *shardLog) placeFence(ctx context.Context, p parcel) (standing absorb.Standing, err error) {
	for range fenceAttempts {
		standing, err = s.place(ctx, p)
		if !errors.Is(err, objstore.ErrAmbiguous) && !errors.Is(err, objstore.ErrConflict) {
			break
		}
	}
	return standing, err
}

// fenceFile is the fence's segment file.
func fenceFile(u segment.UUID, start *segment.Start) ([]byte, error) {
	payload, err := segment.AppendStart(nil, start)
	if err != nil {
		return nil, err
	}
	file := segment.AppendHeader(nil, u)
	if file, err = segment.AppendFrame(file, u, int64(len(file)), segment.KindStart, 0, payload); err != nil {
		return nil, err
	}
	seal := segment.AppendSeal(nil, segment.Seal{Frames: 1, Next: start.Base, Digest: xxhash.Sum64(file)})
	return segment.AppendFrame(file, u, int64(len(file)), segment.KindSeal, uint32(len(file)), seal)
}
