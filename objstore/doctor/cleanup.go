package doctor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
)

// cleanupTries outlasts a fault that strikes once in the cleanup itself.
const cleanupTries = 3

// cleanup removes what the run made, whatever became of it. It runs under a deadline of
// its own: also after Ctrl-C, which must not leave anything behind. It returns what it
// could not remove.
func (s *session) cleanup(ctx context.Context, limit time.Duration) []string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	for range cleanupTries {
		uploads, objects := s.dropUploads(ctx), s.dropObjects(ctx)
		if uploads && objects || ctx.Err() != nil {
			break
		}
	}
	// A crash before this point, or in it, leaves keys that are an hour old some day:
	// leftover.go.
	return s.left()
}

// dropUploads aborts the uploads in the books, and those whose id was lost with an answer.
func (s *session) dropUploads(ctx context.Context) (done bool) {
	done = true
	for _, key := range s.d.unknownUploads() {
		found, err := s.uploadsOf(ctx, key)
		if err != nil {
			done = false
			continue
		}
		s.d.remember(func() {
			delete(s.d.began, key)
			for _, u := range found {
				if u.Key == key {
					s.d.uploads[objstore.Upload{Key: u.Key, ID: u.ID}] = true
				}
			}
		})
	}
	for _, u := range s.d.openUploads() {
		// Twice: a part that lands during the first abort may stay on some stores.
		for range 2 {
			if s.d.Abort(ctx, u.Key, u.ID) != nil {
				done = false
				break
			}
		}
	}
	return done
}

// dropObjects deletes the keys in the books, then looks: a request may have landed late,
// and a store may have said "deleted" of what stands.
func (s *session) dropObjects(ctx context.Context) (done bool) {
	for set := range slices.Chunk(s.d.madeKeys(), s.deleteSet()) {
		if _, err := s.d.Delete(ctx, set); err != nil {
			break // the listing tells what stands: nothing, if the writes were denied as well
		}
	}
	if !s.d.wroteAny() {
		return true
	}
	still, err := s.listed(ctx, s.dir, "", maxList)
	if errors.Is(err, objstore.ErrDenied) {
		return len(s.d.madeKeys()) == 0 // the answers to the deletes are all there is
	}
	if err != nil {
		return false
	}
	s.d.remember(func() {
		clear(s.d.keys)
		for _, o := range still {
			s.d.keys[o.Key] = true
		}
	})
	return len(still) == 0
}

// deleteSet is how many keys one call takes.
func (s *session) deleteSet() int { return max(1, s.d.Capabilities().MaxDeleteSet) }

// left names what is still in the books.
func (s *session) left() []string {
	out := s.d.madeKeys()
	for _, u := range s.d.openUploads() {
		out = append(out, u.Key+" (an unfinished upload)")
	}
	return out
}

func (l *ledger) madeKeys() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.keys))
}

func (l *ledger) wroteAny() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wrote
}

func (l *ledger) openUploads() []objstore.Upload {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Keys(l.uploads), func(a, b objstore.Upload) int {
		if a.Key != b.Key {
			return strings.Compare(a.Key, b.Key)
		}
		return strings.Compare(a.ID, b.ID)
	})
}

// unknownUploads are the keys of uploads whose beginning was not answered.
func (l *ledger) unknownUploads() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.began))
}
