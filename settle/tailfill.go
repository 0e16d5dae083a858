package settle

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// maxTailRefs bounds the refs that one tail-fill looks at.
const maxTailRefs = 4096

// tail-fill folds what was settled since into a stream's tail object, while that is
// small.
//
//	refs   … | tail | window | window | slot …     one run, linked by prev_last
//	new    … | tail ++ window ++ window | slot …
//
// The commit arms the next step: where the new object is a quarter of the one before,
// that one is a tail to fill. So each byte is rewritten O(log n) times.

// owedTail reads the refs from a tail object's first one on.
func (s *Settler) owedTail(ctx context.Context, id string, o order) (debt, error) {
	named, err := s.Catalog.Liveness(ctx, id)
	if err != nil {
		return debt{}, fmt.Errorf("read the refs that name it: %w", err)
	}
	if len(named) == 0 {
		return debt{idle: IdleTail}, nil
	}
	first := &named[0]
	for i := range named {
		if named[i].FirstPos().Less(first.FirstPos()) {
			first = &named[i]
		}
	}
	plan, err := s.Catalog.Plan(ctx, catalog.PlanRequest{Stream: first.Stream, From: first.FirstPos(), Limit: maxTailRefs})
	if errors.Is(err, catalog.ErrNotFound) {
		return debt{idle: IdleTail}, nil
	}
	if err != nil {
		return debt{}, fmt.Errorf("read the refs behind it: %w", err)
	}
	return planTail(id, plan.Refs, first.LiveFrom, o), nil
}

// planTail is the tail-fill policy: pure. refs are the stream's from the tail's first on,
// in order. What armed the marker may be over: the conditions are looked at again.
func planTail(key string, refs []catalog.Ref, liveFrom segment.Pos, o order) debt {
	run := tailRun(key, refs, liveFrom)
	var sum int64
	run = run[:fitting(run, o.bound, &sum, false)]
	if !tailDue(key, run, o.cfg.TailTarget) {
		return debt{idle: IdleTail}
	}
	mem := &member{stream: run[0].Stream, liveFrom: liveFrom, runs: runsOf(run, liveFrom)}
	j := streamJob(mem)
	j.holder, j.revision = o.holder, nextRevision(j.members)
	return debt{jobs: []*job{j}}
}

// tailRun is the last run of settled refs that the tail object begins: up to the first
// slot, lost span or gap.
func tailRun(key string, refs []catalog.Ref, liveFrom segment.Pos) (run []catalog.Ref) {
	open := false
	for i := range refs {
		r := &refs[i]
		live := r.Kind.Settled() && !r.Dead(liveFrom)
		switch k := len(run) - 1; {
		case open && live && r.PrevLast == run[k].LastPos() && r.Chain == run[k].Chain:
			run = append(run, *r)
		case live && r.Key == key:
			run, open = []catalog.Ref{*r}, true
		default:
			open = false
		}
	}
	return run
}

// tailDue applies the rule of the commit that armed it to all of the run: what names the
// tail object as the one ref, what follows as the other.
func tailDue(key string, run []catalog.Ref, target int64) bool {
	behind := len(run)
	for behind > 0 && run[behind-1].Key != key {
		behind--
	}
	if behind == 0 || behind == len(run) {
		return false
	}
	tail, window := run[behind-1], run[behind]
	window.Kind = catalog.RefStream // packs ride along
	tail.Stored, window.Stored = storedOf(run[:behind]), storedOf(run[behind:])
	return catalog.TailFillDue(&tail, &window, target)
}

func storedOf(refs []catalog.Ref) (n int64) {
	for i := range refs {
		n += refs[i].Stored
	}
	return n
}
