package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
)

// leased says whether the holder has the lease of its duty, or of that marker.
func (t *tx) leased(h catalog.Holder) bool {
	k := markerKey{h.Duty, h.ID}
	if l, ok := t.lease.get(k); ok && l.owner == h.Owner && t.now.Before(l.end) {
		return true
	}
	m, ok := t.marker.get(k)
	return ok && m.LeaseOwner == h.Owner && t.now.Before(m.LeaseEnd)
}

// LeaseDuty takes or renews the one lease of a duty on a chain.
func (c *Catalog) LeaseDuty(ctx context.Context, h catalog.Holder, lease time.Duration) error {
	if h.Duty == "" || h.ID == "" || h.Owner == "" || lease <= 0 {
		return catalog.Invalid("LeaseDuty", "duty %q, id %q, owner %q, lease %v", string(h.Duty), h.ID, h.Owner, lease)
	}
	return c.write(ctx, "LeaseDuty", func(t *tx) error {
		k := markerKey{h.Duty, h.ID}
		if l, ok := t.lease.get(k); ok && l.owner != h.Owner && t.now.Before(l.end) {
			return catalog.Conflict("LeaseDuty", "lease of "+catalog.Serves(h), "free, or over", fmt.Sprintf("%s until %s", l.owner, l.end.Format(time.RFC3339)))
		}
		t.lease.set(k, leaseRow{h.Owner, t.now.Add(lease)})
		return nil
	})
}

// ReleaseDuty ends the lease if it is the holder's.
func (c *Catalog) ReleaseDuty(ctx context.Context, h catalog.Holder) error {
	return c.write(ctx, "ReleaseDuty", func(t *tx) error {
		k := markerKey{h.Duty, h.ID}
		if l, ok := t.lease.get(k); ok && l.owner == h.Owner {
			t.lease.del(k)
		}
		return nil
	})
}

// dropLeases forgets the leases of duties that are over.
func (t *tx) dropLeases() {
	var over []markerKey
	for k, l := range t.lease.all() {
		if !t.now.Before(l.end) {
			over = append(over, k)
		}
	}
	for _, k := range over {
		t.lease.del(k)
	}
}
