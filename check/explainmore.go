package check

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// chain reads the chain of a key that has one, with the earliest slot that owes a settle.
func (x *Explainer) chain(ctx context.Context, f *KeyFacts) error {
	switch f.key.Kind {
	case segment.KeySlot, segment.KeyPack, segment.KeyHead, segment.KeyTrim:
	default:
		return nil
	}
	var err error
	f.Chain, err = x.chainFact(ctx, f.key.Chain)
	return err
}

func (x *Explainer) chainFact(ctx context.Context, chain segment.Chain) (*ChainFact, error) {
	row, err := x.Catalog.Chain(ctx, chain)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, nil //nolint:nilnil // no such chain is a fact
	}
	if err != nil {
		return nil, err
	}
	c := &ChainFact{
		Chain: chain.String(), Owner: row.Owner, Address: row.Address, Term: row.Term, LeaseEnd: row.LeaseEnd, Closed: row.Closed,
		NextSeq: row.NextSeq, AbsorbedEnd: row.AbsorbedEnd, Rewritten: row.Rewritten, Condemned: row.Condemned, CondemnedAt: row.CondemnedAt,
		Trimmed: row.Trimmed, Watermark: row.WatermarkSeq, WatermarkID: row.WatermarkSegment, Consumers: row.Consumers,
	}
	tops, err := x.Catalog.Topologies(ctx)
	if err != nil {
		return nil, err
	}
	if top := catalog.EpochIn(tops, chain.Epoch); top != nil {
		c.Settles = top.Settle
	}
	// Ids of a chain's settle markers begin with it, and order by position.
	ms, err := x.Catalog.MarkersOf(ctx, catalog.DutySettle, catalog.ChainID(chain), 1)
	if err != nil {
		return nil, err
	}
	if len(ms) > 0 && strings.HasPrefix(ms[0].ID, catalog.ChainID(chain)+".") {
		if _, c.Owes, err = catalog.ParseSettleID(ms[0].ID); err != nil {
			return nil, err
		}
		c.OwesBy = markerFact(&ms[0])
	}
	return c, nil
}

// slot reads what was absorbed at a slot's position, and who wrote it.
func (x *Explainer) slot(ctx context.Context, f *KeyFacts) error {
	if f.key.Kind != segment.KeySlot || f.Chain == nil {
		return nil
	}
	rows, err := x.Catalog.Slots(ctx, f.key.Chain, f.key.ID, 1)
	if err != nil || len(rows) == 0 || rows[0].ID != f.key.ID {
		return err
	}
	f.Slot, err = x.slotFact(ctx, &rows[0])
	return err
}

func (x *Explainer) slotFact(ctx context.Context, row *catalog.SlotRow) (*SlotFact, error) {
	s := &SlotFact{ID: row.ID, First: row.First, Next: row.Next, UUID: row.UUID, Term: row.Term, Sealed: row.Sealed, Void: row.Void, Closed: row.Closed}
	terms, err := x.Catalog.Terms(ctx, row.Chain)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return nil, err
	}
	for i := range terms {
		if terms[i].Term == row.Term {
			s.Owner = terms[i].Owner
		}
	}
	return s, nil
}

// uploads counts the unfinished uploads to the key. MinIO lists nothing for a part of a key.
func (x *Explainer) uploads(ctx context.Context, f *KeyFacts) error {
	for _, set := range x.Classes {
		for _, store := range set {
			if !store.Capabilities().ListUploads {
				continue
			}
			list, err := store.ListUploads(ctx, "")
			if err != nil {
				return fmt.Errorf("uploads of %s: %w", store.Name(), err)
			}
			for _, u := range list {
				if u.Key == f.Key {
					f.Uploads++
				}
			}
		}
	}
	return nil
}

// The audit table is bounded; so are the pages that are read of it, and the rows kept.
const (
	auditPages = 100
	auditKept  = 10
)

// audited keeps what was recorded of the key, the newest of it. What was said again and
// again is one line with its number.
func (x *Explainer) audited(ctx context.Context, f *KeyFacts) error {
	var last *catalog.AuditRow
	after, again := int64(0), 1
	for range auditPages {
		page, err := x.Catalog.AuditRows(ctx, after, 1000)
		if err != nil {
			return err
		}
		for i := range page {
			r := &page[i]
			if after = r.Seq; r.Subject != f.Key {
				continue
			}
			line := fmt.Sprintf("%s: %s: %s", relative(f.Now, r.Time), r.Kind, r.Detail)
			if last != nil && last.Kind == r.Kind && last.Detail == r.Detail {
				again++
				f.Audit[len(f.Audit)-1] = fmt.Sprintf("%s (said %d times)", line, again)
				continue
			}
			last, again = r, 1
			if f.Audit = append(f.Audit, line); len(f.Audit) > auditKept {
				f.Audit = f.Audit[1:]
			}
		}
		if len(page) < 1000 {
			return nil
		}
	}
	return nil
}

// rowDebts are the duties that see to rows that were given up.
func (x *Explainer) rowDebts(ctx context.Context, f *RowFacts, _ *RowQuestion) error {
	for _, d := range []struct {
		duty catalog.Duty
		id   string
		into **MarkerFact
	}{{catalog.DutyTeardown, catalog.StreamID(f.StreamID), &f.Teardown}, {catalog.DutyReclaim, f.Chain.id(), &f.Reclaim}} {
		if d.id == "" {
			continue
		}
		m, err := x.Catalog.Marker(ctx, d.duty, d.id)
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		*d.into = markerFact(&m)
	}
	return nil
}

func (c *ChainFact) id() string {
	if c == nil {
		return ""
	}
	return c.Chain
}
