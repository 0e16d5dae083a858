package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
)

// askLeased says whether the holder has the lease of its duty, or of that marker.
func (t *tx) askLeased(h catalog.Holder) *bool {
	n := new(bool)
	t.askOne(`SELECT EXISTS (SELECT 1 FROM lease WHERE duty = $1 AND id = $2 AND owner = $3 AND lease_end > $4)
 OR EXISTS (SELECT 1 FROM marker WHERE duty = $1 AND id = $2 AND lease_owner = $3 AND lease_end > $4)`,
		[]any{string(h.Duty), plain(h.ID), plain(h.Owner), column.Nanos(t.now)}, nil, n)
	return n
}

// LeaseDuty takes or renews the one lease of a duty on a chain. Of two that take it at
// once, the second waits at the row, looks again, and finds the first one's.
func (d *DB) LeaseDuty(ctx context.Context, h catalog.Holder, lease time.Duration) error {
	if h.Duty == "" || h.ID == "" || h.Owner == "" || lease <= 0 {
		return catalog.Invalid("LeaseDuty", "duty %q, id %q, owner %q, lease %v", string(h.Duty), h.ID, h.Owner, lease)
	}
	return d.write(ctx, "LeaseDuty", func(t *tx) error {
		if err := t.know(); err != nil {
			return err
		}
		n, err := t.execN(`INSERT INTO lease VALUES ($1, $2, $3, $4)
 ON CONFLICT (duty, id) DO UPDATE SET owner = excluded.owner, lease_end = excluded.lease_end WHERE lease.owner = excluded.owner OR lease.lease_end <= $5`,
			string(h.Duty), plain(h.ID), plain(h.Owner), column.Nanos(t.now.Add(lease)), column.Nanos(t.now))
		if err != nil || n == 1 {
			return err
		}
		var owner string
		var end int64
		found, err := t.one("SELECT owner, lease_end FROM lease WHERE duty = $1 AND id = $2", []any{string(h.Duty), plain(h.ID)}, &owner, &end)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("%w: the lease of %s went away", errMoved, catalog.Serves(h))
		}
		return catalog.Conflict("LeaseDuty", "lease of "+catalog.Serves(h), "free, or over", fmt.Sprintf("%s until %s", owner, column.At(end).Format(time.RFC3339)))
	})
}

// ReleaseDuty ends the lease if it is the holder's.
func (d *DB) ReleaseDuty(ctx context.Context, h catalog.Holder) error {
	return d.write(ctx, "ReleaseDuty", func(t *tx) error {
		t.exec("DELETE FROM lease WHERE duty = $1 AND id = $2 AND owner = $3", string(h.Duty), plain(h.ID), plain(h.Owner))
		return nil
	})
}

// dropLeases queues the end of the duties' leases that are over. One whose holder is
// taking it again right now is passed over: that holder has its row locked, and waiting
// for rows in two orders is how transactions end each other.
func (t *tx) dropLeases() {
	t.exec("DELETE FROM lease WHERE (duty, id) IN (SELECT duty, id FROM lease WHERE lease_end <= $1 FOR UPDATE SKIP LOCKED)", column.Nanos(t.now))
}
