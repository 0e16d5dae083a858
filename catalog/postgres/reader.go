package postgres

import (
	"context"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
	"github.com/strandline/strandline/segment"
)

// Stream is one stream by name.
func (d *DB) Stream(ctx context.Context, name string) (catalog.Stream, error) {
	var m *maybeStream
	err := d.read(ctx, "Stream", func(t *tx) error {
		m = t.askStream("s.name = $1", []byte(name), "")
		return nil
	})
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return catalog.Stream{}, err
	}
	return m.Stream, nil
}

// Streams pages by name.
func (d *DB) Streams(ctx context.Context, after string, limit int) (out []catalog.Stream, err error) {
	err = d.read(ctx, "Streams", func(t *tx) error {
		out = nil
		t.ask("SELECT "+column.Streams+" FROM stream s WHERE s.name > $1 ORDER BY s.name LIMIT $2", func(scan column.Scan) error {
			s, err := scanStream(scan)
			out = append(out, s)
			return err
		}, []byte(after), int64(catalog.PageSize(limit)))
		return nil
	})
	return out, err
}

// Slots pages a chain's slot rows by position.
func (d *DB) Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) (out []catalog.SlotRow, err error) {
	err = d.read(ctx, "Slots", func(t *tx) error {
		out = nil
		t.askSlots(&out, "s.id >= $3 ORDER BY s.id LIMIT $4", c, int64(from), int64(catalog.PageSize(limit)))
		return nil
	})
	return out, err
}

// ChainRefs pages a chain's refs by their last row.
func (d *DB) ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) ([]catalog.Ref, error) {
	var live []catalog.LiveRef
	err := d.read(ctx, "ChainRefs", func(t *tx) error {
		live = nil
		t.askRefs(&live, selectRefs+"WHERE r.epoch = $1::int8 AND r.shard = $2::int8 AND r.last >= $3 ORDER BY r.last LIMIT $4",
			int64(c.Epoch), int64(c.Shard), int64(from), int64(catalog.PageSize(limit)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return catalog.PlainRefs(live), nil
}
