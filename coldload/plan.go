package coldload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// planned is one page of refs with the moment it may no longer be relied on.
type planned struct {
	catalog.Plan
	expires time.Time
}

// plan asks the catalog for the refs from a position on and checks them. first is
// whether nothing was delivered yet: then an explicit from below live_from is the caller's mistake, later it
// is a trim that overtook the reader; both are ErrTrimmed.
func (r *Reader) plan(ctx context.Context, stream string, from, to segment.Pos) (planned, error) {
	asked := r.cfg.Clock() // before the query: the plan is as old as its request
	p, err := r.catalog.Plan(ctx, catalog.PlanRequest{Stream: stream, From: from, Limit: r.cfg.PlanRefs})
	if err != nil {
		return planned{}, fmt.Errorf("plan stream %q from %s: %w", stream, from, err)
	}
	if err := checkStart(p, stream, from); err != nil {
		return planned{}, err
	}
	refs, err := checkLinks(p, from, to)
	if err != nil {
		return planned{}, err
	}
	if len(refs) < len(p.Refs) {
		p.More = false // the next ref begins behind to
	}
	p.Refs = refs
	return planned{Plan: p, expires: asked.Add(p.TTL)}, nil
}

// checkStart refuses a position that was given up. Of a stream that was deleted, and not
// appended to again, the first row that is live is none: an answer without a row would look like
// that of a stream that is empty.
func checkStart(p catalog.Plan, stream string, from segment.Pos) error {
	kind := ErrTrimmed
	if p.Stream.Deleted {
		kind = ErrDeleted
	}
	if from == (segment.Pos{}) && !p.Stream.Deleted || !from.Less(p.LiveFrom) {
		return nil
	}
	return &ReadError{Stream: stream, At: from, First: p.LiveFrom, Kind: kind}
}

// checkLinks finds holes: every ref says which row of the stream comes before its
// first, and only what that row's own chain gave up may be missing between two. It returns the refs that begin at or before to; the one behind to is
// asked for on purpose, since only its link proves that nothing is missing before it.
func checkLinks(p catalog.Plan, from, to segment.Pos) ([]catalog.Ref, error) {
	start := from
	if start.Less(p.LiveFrom) {
		start = p.LiveFrom
	}
	var last segment.Pos
	for i := range p.Refs {
		ref := &p.Refs[i]
		before := last
		if i == 0 {
			before = start
		}
		if !p.Linked(ref, before, i == 0) {
			return nil, hole(p.Stream.Name, later(start, last.Next()), fmt.Sprintf(
				"the ref at %s follows row %s, which no ref serves", ref.FirstPos(), ref.PrevLast))
		}
		if to != (segment.Pos{}) && to.Less(ref.FirstPos()) {
			return p.Refs[:i], nil
		}
		last = ref.LastPos()
	}
	if p.More || !last.Less(p.Stream.Last) || p.Stream.Last.Less(start) || p.Dead(p.Stream.Last) {
		return p.Refs, nil
	}
	if to != (segment.Pos{}) && !last.Less(to) {
		return p.Refs, nil
	}
	return nil, hole(p.Stream.Name, later(start, last.Next()),
		fmt.Sprintf("refs end at %s, the stream at %s", last, p.Stream.Last))
}

func hole(stream string, at segment.Pos, detail string) error {
	return &ReadError{Stream: stream, At: at, Kind: ErrLost, Detail: detail}
}

func later(a, b segment.Pos) segment.Pos {
	if a.Less(b) {
		return b
	}
	return a
}

// isGone says that an object is not there (any more), as opposed to a fault.
func isGone(err error) bool {
	var g *goneError
	return errors.As(err, &g)
}
