package postgres

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// AcquireChain is the compare-and-set on a chain's term. The row's lock makes it one
// against every absorb of the owner before: a slot that is absorbed first is seen here, and
// one that comes after finds the new term.
func (d *DB) AcquireChain(ctx context.Context, a catalog.Acquire) (row catalog.ChainRow, err error) {
	err = d.write(ctx, "AcquireChain", func(t *tx) (err error) {
		stands := t.askChain(a.Chain, " FOR UPDATE")
		var epochs []catalog.Topology
		t.askTopologies(&epochs, "WHERE epoch = $1::int8", int64(a.Epoch))
		if err := t.flush(); err != nil {
			return err
		}
		if row, err = stands.get(a.Chain); err != nil {
			return err
		}
		var takeover string
		if row, takeover, err = catalog.AcquireRow(row, &a, column.One(epochs), t.now); err != nil {
			return err
		}
		if takeover != "" {
			t.audit("takeover", a.Chain.String(), takeover)
		}
		t.exec("INSERT INTO term VALUES ($1::int8, $2::int8, $3, $4, 0, 0, 0)", int64(row.Epoch), int64(row.Shard), int64(row.Term), row.Owner[:])
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
		if row, err = t.lockChain(c.Chain); err != nil {
			return err
		}
		if err := catalog.CheckOwner(verb, &row, c); err != nil {
			return err
		}
		row.LeaseEnd = t.now.Add(lease)
		t.exec("UPDATE chain SET lease_end = $1 WHERE epoch = $2::int8 AND shard = $3::int8", column.Nanos(row.LeaseEnd), int64(c.Epoch), int64(c.Shard))
		return nil
	})
	return row, err
}

// Chain is one row.
func (d *DB) Chain(ctx context.Context, c segment.Chain) (row catalog.ChainRow, err error) {
	var m *maybeChain
	err = d.read(ctx, "Chain", func(t *tx) error {
		m = t.askChain(c, "")
		return nil
	})
	if err != nil {
		return row, err
	}
	return m.get(c)
}

// Chains lists all rows by (epoch, shard).
func (d *DB) Chains(ctx context.Context) (out []catalog.ChainRow, err error) {
	err = d.read(ctx, "Chains", func(t *tx) error {
		out = nil
		t.askChains(&out, "")
		return nil
	})
	return out, err
}

func (t *tx) askChains(out *[]catalog.ChainRow, how string) {
	t.ask("SELECT "+column.Chains+" FROM chain ORDER BY epoch, shard"+how, func(scan column.Scan) error {
		r, err := column.Chain(scan)
		*out = append(*out, r)
		return err
	})
}

// Terms lists a chain's terms.
func (d *DB) Terms(ctx context.Context, c segment.Chain) (out []catalog.TermRow, err error) {
	err = d.read(ctx, "Terms", func(t *tx) error {
		out = nil
		t.ask("SELECT "+column.Terms+" FROM term WHERE epoch = $1::int8 AND shard = $2::int8 ORDER BY term", func(scan column.Scan) error {
			r, err := column.Term(scan)
			out = append(out, r)
			return err
		}, int64(c.Epoch), int64(c.Shard))
		return nil
	})
	return out, err
}

// AckClosed moves a consumer's cursor on a chain that has no owner any more.
func (d *DB) AckClosed(ctx context.Context, c segment.Chain, consumer string, seq segment.Seq) (row catalog.ChainRow, err error) {
	err = d.write(ctx, "AckClosed", func(t *tx) (err error) {
		stands, settings := t.askChain(c, " FOR UPDATE"), t.askSettings("")
		if err := t.flush(); err != nil {
			return err
		}
		if row, err = stands.get(c); err != nil {
			return err
		}
		moved, slowest, err := catalog.AckCursor(&row, consumer, seq)
		if err != nil {
			return err
		}
		row.Consumers = moved
		if slowest {
			t.armTrim(c, settings)
		}
		return t.putChain(&row)
	})
	return row, err
}
