package localtier

import "context"

// copyLoop makes the copies of slots that a bucket of the set missed when they were
// absorbed (absorb.Copies): nothing waits for them. What is owed when this process ends is
// found by the auditor's absorb-check.
func (s *shardLog) copyLoop(ctx context.Context) {
	for {
		select {
		case <-s.bucket.Owed.More():
		case <-ctx.Done():
			return
		}
		for tries := 0; ; tries++ {
			err := s.bucket.Owed.Pay(ctx, s.catalog, s.bucket)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return
			}
			s.note("copy slots to every bucket of the set", err)
			if !pause(ctx, backoff(s.cfg, tries, err)) {
				return
			}
		}
	}
}
