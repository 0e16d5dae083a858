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

// ParseSettleID is the inverse of SettleID.
func ParseSettleID(s string) (c segment.Chain, id segment.ID, err error) {
	_, err = fmt.Sscanf(s, "%08x.%08x.%016x", &c.Epoch, &c.Shard, &id)
	if err != nil || id == 0 || SettleID(c, id) != s {
		return segment.Chain{}, 0, fmt.Errorf("%w: marker id %q is not a slot", ErrCorrupt, s)
	}
	return c, id, nil
}

// ParseChainID is the inverse of ChainID.
func ParseChainID(s string) (c segment.Chain, err error) {
	if _, err = fmt.Sscanf(s, "%08x.%08x", &c.Epoch, &c.Shard); err != nil || ChainID(c) != s {
		return segment.Chain{}, fmt.Errorf("%w: marker id %q is not a chain", ErrCorrupt, s)
	}
	return c, nil
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
func ParsePackMergeID(s string) (c segment.Chain, generation uint32, err error) {
	_, err = fmt.Sscanf(s, "%08x.%08x.%08x", &c.Epoch, &c.Shard, &generation)
	if err != nil || PackMergeID(c, generation) != s {
		return segment.Chain{}, 0, fmt.Errorf("%w: marker id %q is not a generation of a chain", ErrCorrupt, s)
	}
	return c, generation, nil
}
