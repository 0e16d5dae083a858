package sim

import (
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/segment"
)

// deleting holds a delete that is about to happen to I1, I2 and I4.
func (k *checker) deleting(d *stepStore, f fate, keys []string) {
	k.sim.cat.View(func(v memory.View) {
		for _, key := range keys {
			if d.bucket.stands(key) && k.sim.back.deleteSince(d.p, f, key) {
				k.mayDelete(v, key)
			}
		}
	})
}

func (k *checker) mayDelete(v memory.View, key string) {
	if v.Named(key) {
		k.violated("I2", "delete of %s, which a ref names", key)
	}
	if at, ok := k.died[key]; ok && time.Since(at) < k.sim.leastGrace() {
		k.violated("I4", "delete of %s %v after its last ref died", key, time.Since(at))
	}
	parsed, err := segment.ParseKey(key)
	if err != nil {
		k.violated("K15", "delete of %q: %v", key, err)
		return
	}
	switch parsed.Kind {
	case segment.KeySlot:
		row := v.Chain(parsed.Chain)
		if row == nil || parsed.ID >= row.Condemned {
			k.violated("I1", "delete of slot %s, which was not condemned", key)
			return
		}
		k.headSays(parsed)
	case segment.KeyStream, segment.KeyPack:
		if in := v.Intent(key); (in == nil || in.State == catalog.IntentStanding) && !k.sim.back.condemned(key) {
			k.violated("03 §8", "delete of %s, which is neither condemned nor burned", key)
		}
	case segment.KeyTrim:
	default:
		k.violated("02", "delete of the record %s", key)
	}
}

// deleted forgets what went.
func (k *checker) deleted(b *bucket, keys []string) {
	for _, key := range keys {
		if b.stands(key) {
			continue
		}
		b.gone[key] = true
		if !k.sim.stands(key) {
			delete(k.objects, key)
		}
	}
}

// watched is I3: every object is somebody's to look at. (Uploads are the sweep's, by their
// age: whose create was answered late is in no intent. The end asks that none is left.)
func (k *checker) watched() {
	k.sim.cat.View(func(v memory.View) {
		for _, key := range k.sim.mem.Keys() {
			if !k.isWatched(v, key) && !k.sim.back.loose[key] && !k.sim.back.announced(key) {
				k.violated("I3", "nothing watches %s", key)
			}
		}
	})
}

func (k *checker) isWatched(v memory.View, key string) bool {
	parsed, err := segment.ParseKey(key)
	if err != nil {
		return false
	}
	switch parsed.Kind {
	case segment.KeyStream, segment.KeyPack:
	default:
		return true // records; a slot from trimmed on, or a stray that the chain's sweep finds
	}
	if k.named[key] || v.Intent(key) != nil {
		return true
	}
	for _, d := range []catalog.Duty{catalog.DutyReapCheck, catalog.DutyGC, catalog.DutyTailFill} {
		if v.Marker(d, key) != nil {
			return true
		}
	}
	return false
}
