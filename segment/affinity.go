package segment

import (
	"encoding/binary"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// ShardOf is the shard that owns a stream, among shards (at least 1). It is
// byte-identical with seed 000 for every snowflake id: a name that is the
// canonical decimal form of an i64 hashes as its eight little-endian bytes,
// every other name as its own bytes. A reserved stream belongs to the shard in
// its name.
func ShardOf(stream string, shards uint32) Shard {
	if s, ok := auditShard(stream); ok {
		return s
	}
	return Shard(affinityHash(stream) % uint64(max(shards, 1)))
}

func affinityHash(stream string) uint64 {
	if n, ok := canonicalInt(stream); ok {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		return xxhash.Sum64(b[:])
	}
	return xxhash.Sum64String(stream)
}

// canonicalInt accepts -?[1-9][0-9]*|0 in the range of an i64. Formatting back
// refuses "+1", "01" and "-0", which ParseInt takes.
func canonicalInt(s string) (int64, bool) {
	if s == "" || len(s) > 20 || (s[0] != '-' && (s[0] < '0' || s[0] > '9')) {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != s {
		return 0, false
	}
	return n, true
}
