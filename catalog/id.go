package catalog

import (
	"fmt"
	"strconv"

	"github.com/strandline/strandline/segment"
)

// Marker ids are derived from what they watch, so a second arm collapses onto the
// first.

// ChainID is the id of a chain's markers.
func ChainID(c segment.Chain) string { return c.String() }

// SettleID is the id of a slot's settle marker; ids of one chain order by position.
func SettleID(c segment.Chain, id segment.ID) string {
	return fmt.Sprintf("%s.%016x", c, uint64(id))
}

// StreamID is the id of a stream's markers.
func StreamID(id int64) string { return strconv.FormatInt(id, 10) }

// ParseChainID is the inverse of ChainID.
func ParseChainID(s string) (segment.Chain, error) {
	var e, sh uint32
	if n, err := fmt.Sscanf(s, "%08x.%08x", &e, &sh); err != nil || n != 2 || ChainID(segment.Chain{Epoch: segment.Epoch(e), Shard: segment.Shard(sh)}) != s {
		return segment.Chain{}, fmt.Errorf("%w: marker id %q is not a chain", ErrCorrupt, s)
	}
	return segment.Chain{Epoch: segment.Epoch(e), Shard: segment.Shard(sh)}, nil
}

// ParseStreamID is the inverse of StreamID.
func ParseStreamID(s string) (int64, error) {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id <= 0 {
		return 0, fmt.Errorf("%w: marker id %q is not a stream", ErrCorrupt, s)
	}
	return id, nil
}

// PackMergeID is the id of the marker of one generation of a chain's packs.
func PackMergeID(c segment.Chain, generation uint32) string {
	return fmt.Sprintf("%s.%08x", c, generation)
}

// ParsePackMergeID is the inverse of PackMergeID.
func ParsePackMergeID(s string) (segment.Chain, uint32, error) {
	bad := fmt.Errorf("%w: marker id %q is not a generation of a chain", ErrCorrupt, s)
	const chainLen = 17
	if len(s) <= chainLen || s[chainLen] != '.' {
		return segment.Chain{}, 0, bad
	}
	c, err := ParseChainID(s[:chainLen])
	if err != nil {
		return segment.Chain{}, 0, bad
	}
	n, err := strconv.ParseUint(s[chainLen+1:], 16, 32)
	if err != nil || PackMergeID(c, uint32(n)) != s {
		return segment.Chain{}, 0, bad
	}
	return c, uint32(n), nil
}
