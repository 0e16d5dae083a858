package settle

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// gc copies what is live of an object that is mostly dead (the probe said so) into one
// of the same kind, so that the old one dies as a whole.
//
//	old   [ dead | live | dead | live ]     refs name the live spans
//	new   [ live | live ]                   same first row, or range of slots; next revision

// owedGC reads the refs that name an object. The object itself is not looked at.
func (s *Settler) owedGC(ctx context.Context, id string, o order) (debt, error) {
	key, err := segment.ParseKey(id)
	if err == nil && key.Kind != segment.KeyStream && key.Kind != segment.KeyPack {
		err = fmt.Errorf("a %s", key.Kind)
	}
	if err != nil {
		return debt{}, fmt.Errorf("%w: marker id %q is not a settled object: %w", catalog.ErrCorrupt, id, err)
	}
	refs, err := s.Catalog.Liveness(ctx, id)
	if err != nil {
		return debt{}, fmt.Errorf("read the refs that name it: %w", err)
	}
	return planGC(&key, refs, o), nil
}

// planGC is the gc policy: pure. Nothing below live_from is moved; runs that do not
// link stay apart, in one object. An object whose live part passes a batch goes in
// several, each armed by the reap-check that the one before leaves behind.
func planGC(key *segment.Key, refs []catalog.LiveRef, o order) debt {
	plain := make([]catalog.Ref, len(refs))
	liveFrom := make(map[int64]segment.Pos)
	for i := range refs {
		plain[i] = refs[i].Ref
		liveFrom[refs[i].StreamID] = refs[i].LiveFrom // an object lies in one epoch, so in one chain a stream
	}
	members := within(membersOf(plain, liveFrom), o.bound)
	if len(members) == 0 {
		return debt{idle: IdleDead}
	}
	var j *job
	if key.Kind == segment.KeyPack {
		j = chainPack(key.Chain, key.ID, key.LastID)
		j.members, j.generation = members, members[0].runs[0].refs[0].Generation
	} else {
		j = streamJob(members[0])
	}
	j.holder, j.revision = o.holder, nextRevision(members)
	return debt{jobs: []*job{j}}
}
