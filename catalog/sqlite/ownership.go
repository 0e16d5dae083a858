package sqlite

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// AcquireChain is the compare-and-set on a chain's term.
func (d *DB) AcquireChain(ctx context.Context, a catalog.Acquire) (row catalog.ChainRow, err error) {
	err = d.write(ctx, "AcquireChain", func(t *tx) (err error) {
		if row, err = t.chain(a.Chain); err != nil {
			return err
		}
		epochs, err := t.topologies("WHERE epoch = ?", a.Epoch)
		if err != nil {
			return err
		}
		var takeover string
		if row, takeover, err = catalog.AcquireRow(row, &a, column.One(epochs), t.now); err != nil {
			return err
		}
		if takeover != "" {
			if err := t.audit("takeover", a.Chain.String(), takeover); err != nil {
				return err
			}
		}
		if err := t.exec("INSERT INTO term VALUES (?, ?, ?, ?, 0, 0, 0)", row.Epoch, row.Shard, row.Term, row.Owner[:]); err != nil {
			return err
		}
		return t.putChain(&row)
	})
	return row, err
}

// RenewChain extends the lease of its owner.
func (d *DB) RenewChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term, lease time.Duration) (catalog.ChainRow, error) {
	if lease <= 0 {
		return catalog.ChainRow{}, catalog.Invalid("RenewChain", "lease %v", lease)
	}
	return d.lease(ctx, "RenewChain", catalog.Claim{Chain: c, Owner: owner, Term: term}, lease)
}

// ReleaseChain ends the lease; the owner stays, and may resume.
func (d *DB) ReleaseChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term) error {
	_, err := d.lease(ctx, "ReleaseChain", catalog.Claim{Chain: c, Owner: owner, Term: term}, 0)
	return err
}

func (d *DB) lease(ctx context.Context, verb string, c catalog.Claim, lease time.Duration) (row catalog.ChainRow, err error) {
	err = d.write(ctx, verb, func(t *tx) (err error) {
		if row, err = t.chain(c.Chain); err != nil {
			return err
		}
		if err := catalog.CheckOwner(verb, &row, c); err != nil {
			return err
		}
		row.LeaseEnd = t.now.Add(lease)
		return t.putChain(&row)
	})
	return row, err
}

// Chain is one row.
func (d *DB) Chain(ctx context.Context, c segment.Chain) (row catalog.ChainRow, err error) {
	err = d.read(ctx, "Chain", func(t *tx) (err error) {
		row, err = t.chain(c)
		return err
	})
	return row, err
}

// Chains lists all rows by (epoch, shard).
func (d *DB) Chains(ctx context.Context) (out []catalog.ChainRow, err error) {
	err = d.read(ctx, "Chains", func(t *tx) (err error) {
		out, err = t.chains()
		return err
	})
	return out, err
}

func (t *tx) chains() (out []catalog.ChainRow, err error) {
	err = t.query("SELECT "+column.Chains+" FROM chain ORDER BY epoch, shard", func(scan column.Scan) error {
		r, err := column.Chain(scan)
		out = append(out, r)
		return err
	})
	return out, err
}

// Terms lists a chain's terms.
func (d *DB) Terms(ctx context.Context, c segment.Chain) (out []catalog.TermRow, err error) {
	err = d.read(ctx, "Terms", func(t *tx) error {
		return t.query("SELECT "+column.Terms+" FROM term WHERE epoch = ? AND shard = ? ORDER BY term", func(scan column.Scan) error {
			r, err := column.Term(scan)
			out = append(out, r)
			return err
		}, c.Epoch, c.Shard)
	})
	return out, err
}

// AckClosed moves a consumer's cursor on a chain that has no owner any more.
func (d *DB) AckClosed(ctx context.Context, c segment.Chain, consumer string, seq segment.Seq) (row catalog.ChainRow, err error) {
	err = d.write(ctx, "AckClosed", func(t *tx) (err error) {
		if row, err = t.chain(c); err != nil {
			return err
		}
		moved, slowest, err := catalog.AckCursor(&row, consumer, seq)
		if err != nil {
			return err
		}
		row.Consumers = moved
		if slowest {
			if err := t.armTrim(c); err != nil {
				return err
			}
		}
		return t.putChain(&row)
	})
	return row, err
}
