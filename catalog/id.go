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
