package catalog

import (
	"fmt"
	"strconv"

	"github.com/strandline/strandline/segment"
)

// ParseSettleID is the inverse of SettleID.
func ParseSettleID(s string) (segment.Chain, segment.ID, error) {
	bad := fmt.Errorf("%w: marker id %q is not a slot", ErrCorrupt, s)
	const chainLen = 17
	if len(s) <= chainLen || s[chainLen] != '.' {
		return segment.Chain{}, 0, bad
	}
	c, err := ParseChainID(s[:chainLen])
	if err != nil {
		return segment.Chain{}, 0, bad
	}
	id, err := strconv.ParseUint(s[chainLen+1:], 16, 64)
	if err != nil || id == 0 || SettleID(c, segment.ID(id)) != s {
		return segment.Chain{}, 0, bad
	}
	return c, segment.ID(id), nil
}

// MaxTake bounds one TakeDue.
const MaxTake = 10_000

// ValidateTake checks a request for due markers.
func ValidateTake(k *Take) error {
	if len(k.Duties) == 0 || k.Owner == "" || k.Lease <= 0 || k.Limit <= 0 || k.Limit > MaxTake || k.Ahead < 0 {
		return Invalid("TakeDue", "%d duties, owner %q, lease %v, limit %d, ahead %v", len(k.Duties), k.Owner, k.Lease, k.Limit, k.Ahead)
	}
	return nil
}
