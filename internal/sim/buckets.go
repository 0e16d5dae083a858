package sim

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// bucket is one of the class's set: the first decides, the other holds copies of slots.
type bucket struct {
	*memstore.Driver
	number int
	away   time.Time       // until then; Sim.mu
	gone   map[string]bool // keys that a delete took, or found absent; Sim.applying
	taken  map[string]bool // keys that were lost; Sim.applying
	seen   int             // violations of the referee; Sim.applying
}

// Name tells the buckets of a set apart.
func (b *bucket) Name() string {
	if b.number == 0 {
		return b.Driver.Name()
	}
	return fmt.Sprintf("%s%d", b.Driver.Name(), b.number+1)
}

// op names a request in the trace and in the coverage.
func (b *bucket) op(op objstore.Op) string {
	if b.number == 0 {
		return "store " + string(op)
	}
	return fmt.Sprintf("store%d %s", b.number+1, op)
}

// body is an object's bytes.
func (b *bucket) body(key string) (body []byte, etag string, ok bool) {
	r, info, err := b.Get(context.Background(), key, objstore.Whole, "")
	if err != nil {
		return nil, "", false
	}
	body, err = io.ReadAll(r)
	return body, info.ETag, err == nil
}

func (b *bucket) stands(key string) bool {
	_, err := b.Head(context.Background(), key)
	return err == nil
}

func (s *Sim) bucketNames() (names []string) {
	for _, b := range s.buckets {
		names = append(names, b.Name())
	}
	return names
}

// stands says that any bucket has the key.
func (s *Sim) stands(key string) bool {
	for _, b := range s.buckets {
		if b.stands(key) {
			return true
		}
	}
	return false
}

// newBucket makes one of the set.
func (s *Sim) newBucket(number int) *bucket {
	seed := s.cfg.Seed + uint64(number)*7
	opt := memstore.Options{
		Clock: time.Now, MinPart: 512, MaxDelete: 3 + int(seed%5), PageSize: 4 + int(seed%7), EmptyPages: seed%3 == 0,
		AbortsLosers: seed%5 == 0, Seed: seed + 1,
		// A stalled owner may create a slot anew at a position that was trimmed: nothing of it
		// is ever absorbed. That nothing is overwritten the checker sees.
		// So may a stalled job's request land when its key was burned meanwhile: nobody commits
		// it, and the last look at the key deletes it.
		Mutable: func(key string) bool {
			return strings.HasPrefix(key, "rw/") || strings.HasPrefix(key, "seg/") || s.mayComeAgain(key)
		},
		MayReadDeleted: func(string) bool { return true },
	}
	if seed%4 == 1 {
		opt.Shuffle = seed
	}
	return &bucket{Driver: memstore.New(opt), number: number, gone: map[string]bool{}, taken: map[string]bool{}}
}

// eventStoreAway takes one bucket of the set away, or all of them.
func (s *Sim) eventStoreAway() {
	d := s.between(time.Second, s.cfg.Rates.AwayStoreMax)
	which := s.rng.IntN(len(s.buckets) + 1)
	for _, b := range s.buckets {
		if which == len(s.buckets) || which == b.number {
			s.note("", "store away", b.Name()+" "+d.String())
			s.mu.Lock()
			b.away = time.Now().Add(d)
			s.mu.Unlock()
		}
	}
}

// copied holds a copy to what was written into the bucket that decides.
func (k *checker) copied(b *bucket, key string) {
	if parsed, err := segment.ParseKey(key); err != nil || parsed.Kind != segment.KeySlot {
		return // a stamp, or a topology record
	}
	body, _, ok := b.body(key)
	o := k.objects[key]
	if ok && o != nil && digest(body) != o.digest {
		k.violated("03 §2", "the copy of %s in %s differs from what stands in %s", key, b.Name(), k.sim.mem.Name())
	}
}
