package doctor

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
)

// LeftoverAge is when keys of another run are taken for those of one that was killed. A
// run takes a minute or two; all ages are measured by the store's own clock.
const LeftoverAge = time.Hour

// sweep removes what killed runs left. It is a service, not a check: a fault in it is met
// again by the checks, and what it could not remove waits for the next run.
func (s *session) sweep(ctx context.Context) {
	mark := s.dir + "now"
	if _, err := s.make(ctx, mark, nil); err != nil {
		return
	}
	list, err := s.listed(ctx, s.opts.Prefix, "", maxList)
	if err != nil {
		return
	}
	now, ok := s.storeTime(list, mark)
	if !ok {
		return
	}
	s.sweepObjects(ctx, list, now)
	uploads, err := s.d.ListUploads(ctx, s.opts.Prefix)
	if err != nil {
		return
	}
	for _, u := range uploads {
		if !strings.HasPrefix(u.Key, s.dir) && old(u.Initiated, now) && s.d.Abort(ctx, u.Key, u.ID) == nil {
			s.swept++
		}
	}
}

// storeTime is the store's clock: when it says that our own object was just written.
func (s *session) storeTime(list []objstore.Info, mark string) (time.Time, bool) {
	i := slices.IndexFunc(list, func(o objstore.Info) bool { return o.Key == mark })
	if i < 0 || list[i].Modified.IsZero() {
		return time.Time{}, false
	}
	return list[i].Modified, true
}

// sweepObjects deletes the keys of a listing that are old.
func (s *session) sweepObjects(ctx context.Context, list []objstore.Info, now time.Time) {
	var dead []string
	for _, o := range list {
		if !strings.HasPrefix(o.Key, s.dir) && strings.HasPrefix(o.Key, s.opts.Prefix) && old(o.Modified, now) {
			dead = append(dead, o.Key)
		}
	}
	for set := range slices.Chunk(dead, s.deleteSet()) {
		results, err := s.d.Delete(ctx, set)
		if err != nil {
			return
		}
		for _, r := range results {
			if r.Err == nil {
				s.swept++
			}
		}
	}
}

func old(made, now time.Time) bool { return !made.IsZero() && now.Sub(made) >= LeftoverAge }
