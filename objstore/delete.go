package objstore

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Delete removes any number of keys, in sets as large as the store takes. The
// result has one entry for each key asked, in order, whatever happened: a nil
// Err is the only proof that a key is gone (K35). Only keys that failed are
// tried again.
//
// err is not nil if some key was not even tried, because ctx ended; the entries
// of such keys carry it too. Failures of single keys are in their entries alone.
func (s *Store) Delete(ctx context.Context, keys []string) ([]DeleteResult, error) {
	fate := make(map[string]error, len(keys))
	var todo []string
	for _, key := range keys {
		if _, dup := fate[key]; dup {
			continue
		}
		if fate[key] = CheckKey(key); fate[key] == nil {
			todo = append(todo, key)
		}
	}
	var ended error
	for set := range slices.Chunk(todo, s.deleteSet()) {
		if ctx.Err() != nil {
			ended = notStarted(ctx, OpDelete, set[0])
			for _, key := range set {
				fate[key] = ended
			}
			continue
		}
		s.deleteSome(ctx, set, fate)
	}
	out := make([]DeleteResult, len(keys))
	for i, key := range keys {
		out[i] = DeleteResult{Key: key, Err: fate[key]}
	}
	return out, ended
}

func (s *Store) deleteSet() int {
	if n := s.Capabilities().MaxDeleteSet; n > 0 {
		return n
	}
	return 1
}

// deleteSome deletes one set, retrying what failed, and enters every key's fate.
func (s *Store) deleteSome(ctx context.Context, set []string, fate map[string]error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	for n := 0; ; n++ {
		answered, err := s.deleteOnce(ctx, set)
		var failed []string
		var asked time.Duration
		for _, key := range set {
			kerr := err
			if err == nil {
				kerr = fateOf(key, answered)
			}
			fate[key] = kerr
			if kerr != nil && again(OpDelete, kerr) {
				failed = append(failed, key)
				asked = max(asked, RetryAfter(kerr))
			}
		}
		if len(failed) == 0 || n+1 >= s.cfg.Attempts || s.pause(ctx, n, asked) != nil {
			return
		}
		set = failed
	}
}

// deleteOnce makes one attempt at a set and returns what the store said of which key.
func (s *Store) deleteOnce(ctx context.Context, set []string) (map[string]error, error) {
	var results []DeleteResult
	var began time.Time
	err := s.attempt(ctx, OpDelete, set[0], func(ctx context.Context) (err error) {
		began = time.Now()
		results, err = s.driver.Delete(ctx, set)
		return err
	})
	if err != nil {
		return nil, err
	}
	throttled := false
	answered := make(map[string]error, len(results))
	for _, r := range results {
		answered[r.Key] = r.Err
		throttled = s.brake.heed(began, r.Err) || throttled // a SlowDown may stand inside a 200
	}
	if throttled {
		s.stats.throttled.Add(1)
	}
	return answered, nil
}

// fateOf is what became of a key of a call that was answered.
func fateOf(key string, answered map[string]error) error {
	err, ok := answered[key]
	switch {
	case !ok: // the store did not say: not gone until it does
		return &Error{Op: "delete", Key: key, Kind: ErrAmbiguous, Err: errors.New("the store did not report this key: delete it again")}
	case err != nil && !known(err):
		return &Error{Op: "delete", Key: key, Kind: ErrAmbiguous, Err: err}
	}
	return err
}
