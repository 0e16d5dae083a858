package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// row reads a chain: the caller's own copy.
func (t *tx) row(c segment.Chain) (catalog.ChainRow, error) {
	r, ok := t.chain.get(c)
	if !ok {
		return catalog.ChainRow{}, fmt.Errorf("%w: chain %s; its topology makes it", catalog.ErrNotFound, c)
	}
	return copyChain(r), catalog.CheckCursors(r)
}

// putChain writes all of a row but its key.
func (t *tx) putChain(r *catalog.ChainRow) error {
	if err := catalog.CheckCursors(r); err != nil {
		return err
	}
	row := copyChain(r)
	t.chain.set(r.Chain, &row)
	return nil
}

// AcquireChain is the compare-and-set on a chain's term.
func (c *Catalog) AcquireChain(ctx context.Context, a catalog.Acquire) (row catalog.ChainRow, err error) {
	err = c.write(ctx, "AcquireChain", func(t *tx) (err error) {
		if row, err = t.row(a.Chain); err != nil {
			return err
		}
		epoch, _ := t.topology.get(a.Epoch)
		var takeover string
		if row, takeover, err = catalog.AcquireRow(row, &a, epoch, t.now); err != nil {
			return err
		}
		if takeover != "" {
			t.record("takeover", a.Chain.String(), takeover)
		}
		k := termKey{row.Chain, row.Term}
		if _, stands := t.term.get(k); stands {
			// A slot of a term that the catalog never gave was absorbed before it was.
			return fmt.Errorf("%w: term %d of chain %s stands already; run fsck", catalog.ErrCorrupt, row.Term, row.Chain)
		}
		t.term.set(k, &catalog.TermRow{Chain: row.Chain, Term: row.Term, Owner: row.Owner})
		return t.putChain(&row)
	})
	return row, err
}

// RenewChain extends the lease of its owner.
func (c *Catalog) RenewChain(ctx context.Context, ch segment.Chain, owner segment.UUID, term segment.Term, lease time.Duration) (catalog.ChainRow, error) {
	if lease <= 0 {
		return catalog.ChainRow{}, catalog.Invalid("RenewChain", "lease %v", lease)
	}
	return c.lease(ctx, "RenewChain", catalog.Claim{Chain: ch, Owner: owner, Term: term}, lease)
}

// ReleaseChain ends the lease; the owner stays, and may resume.
func (c *Catalog) ReleaseChain(ctx context.Context, ch segment.Chain, owner segment.UUID, term segment.Term) error {
	_, err := c.lease(ctx, "ReleaseChain", catalog.Claim{Chain: ch, Owner: owner, Term: term}, 0)
	return err
}

func (c *Catalog) lease(ctx context.Context, verb string, claim catalog.Claim, lease time.Duration) (row catalog.ChainRow, err error) {
	err = c.write(ctx, verb, func(t *tx) (err error) {
		if row, err = t.row(claim.Chain); err != nil {
			return err
		}
		if err := catalog.CheckOwner(verb, &row, claim); err != nil {
			return err
		}
		row.LeaseEnd = t.now.Add(lease)
		return t.putChain(&row)
	})
	return row, err
}

// Chain is one row.
func (c *Catalog) Chain(ctx context.Context, ch segment.Chain) (row catalog.ChainRow, err error) {
	err = c.read(ctx, "Chain", func(t *tx) (err error) {
		row, err = t.row(ch)
		return err
	})
	return row, err
}

// Chains lists all rows by (epoch, shard).
func (c *Catalog) Chains(ctx context.Context) (out []catalog.ChainRow, err error) {
	err = c.read(ctx, "Chains", func(t *tx) error {
		out = t.chains()
		return nil
	})
	return out, err
}

func (t *tx) chains() []catalog.ChainRow {
	out := make([]catalog.ChainRow, 0, t.chain.n)
	for _, r := range t.chain.all() {
		out = append(out, copyChain(r))
	}
	return out
}

// Terms lists a chain's terms.
func (c *Catalog) Terms(ctx context.Context, ch segment.Chain) (out []catalog.TermRow, err error) {
	err = c.read(ctx, "Terms", func(t *tx) error {
		for k, r := range t.term.from(termKey{ch, 0}) {
			if k.Chain != ch {
				return nil
			}
			out = append(out, *r)
		}
		return nil
	})
	return out, err
}

// AckClosed moves a consumer's cursor on a chain that has no owner any more.
func (c *Catalog) AckClosed(ctx context.Context, ch segment.Chain, consumer string, seq segment.Seq) (row catalog.ChainRow, err error) {
	err = c.write(ctx, "AckClosed", func(t *tx) (err error) {
		if row, err = t.row(ch); err != nil {
			return err
		}
		moved, slowest, err := catalog.AckCursor(&row, consumer, seq)
		if err != nil {
			return err
		}
		row.Consumers = moved
		if slowest {
			t.armTrim(ch)
		}
		return t.putChain(&row)
	})
	return row, err
}
