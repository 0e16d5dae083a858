package instance

import "sync/atomic"

// Stats is an instance's state and what it did since Open.
type Stats struct {
	Bytes   int64 `json:"bytes"`     // of all files
	Max     int64 `json:"max_bytes"` // they never pass this
	Blocks  int64 `json:"blocks"`    // in files
	Objects int64 `json:"objects"`   // of which anything is cached or under way
	Busy    int64 `json:"busy"`      // of them, those with reads, fills or deletes under way

	Hits        int64 `json:"hits"`      // blocks served from files
	HitBytes    int64 `json:"hit_bytes"` // of them
	Misses      int64 `json:"misses"`    // waits for a GET
	Joined      int64 `json:"joined"`    // of them, for one that was under way already
	StoreGets   int64 `json:"store_gets"`
	StoreBytes  int64 `json:"store_bytes"`
	Evictions   int64 `json:"evictions"`     // blocks that had to make room
	Unkept      int64 `json:"unkept"`        // blocks that were served and not kept
	WriteErrors int64 `json:"write_errors"`  // of them, because the disk refused
	Poisoned    int64 `json:"poisoned"`      // files that were not what they had been
	Changed     int64 `json:"changed"`       // keys that had two contents
	Forgotten   int64 `json:"forgotten"`     // keys that were to be forgotten, by deletes and evictions
	Deletes     int64 `json:"deletes"`       // keys that are gone from the store
	Calls       int64 `json:"store_deletes"` // of Delete that this took
	Recovered   int64 `json:"recovered"`     // blocks found at Open
}

type stats struct {
	hits, hitBytes, misses, joined, storeGets, storeBytes, evictions, unkept, writeErrors, poisoned,
	changed, forgotten, deletes, storeDeletes, recovered atomic.Int64
}

// Stats is a snapshot.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	s := Stats{Bytes: c.used, Max: c.bound, Blocks: c.held, Objects: int64(len(c.objects))}
	for _, o := range c.objects {
		if o.users > 0 || o.busy > 0 {
			s.Busy++
		}
	}
	c.mu.Unlock()
	t := &c.stats
	s.Hits, s.HitBytes, s.Misses, s.Joined = t.hits.Load(), t.hitBytes.Load(), t.misses.Load(), t.joined.Load()
	s.StoreGets, s.StoreBytes, s.Evictions = t.storeGets.Load(), t.storeBytes.Load(), t.evictions.Load()
	s.Unkept, s.WriteErrors, s.Poisoned, s.Changed = t.unkept.Load(), t.writeErrors.Load(), t.poisoned.Load(), t.changed.Load()
	s.Forgotten, s.Deletes, s.Calls, s.Recovered = t.forgotten.Load(), t.deletes.Load(), t.storeDeletes.Load(), t.recovered.Load()
	return s
}
