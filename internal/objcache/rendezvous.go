package objcache

import "github.com/cespare/xxhash/v2"

// score says how much an instance is meant for a key: the highest has it. If an
// instance goes, only its own keys move, and if one comes, only those that it gets.
//
// A key that moves leaves its ranges where it was. Nobody asks for them there again, and
// they go when room is needed; should the key come back, max-age bounds what is served.
func score(instance, bucket, key string) uint64 {
	var d xxhash.Digest
	d.Reset()
	for _, s := range []string{instance, "\x00", bucket, "\x00", key} {
		_, _ = d.WriteString(s) // a hash takes everything
	}
	return d.Sum64()
}

// choose gives the key's instance, or nil if there is none.
func choose(instances []*instance, bucket, key string) *instance {
	var best *instance
	var most uint64
	for _, in := range instances {
		if s := score(in.addr, bucket, key); best == nil || s > most || s == most && in.addr > best.addr {
			best, most = in, s
		}
	}
	return best
}
