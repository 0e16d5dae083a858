package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// otherThan says in words how an object differs from the slot that was absorbed at its
// position, or nothing. Nothing is expected of a void one.
func (o *object) otherThan(row *catalog.SlotRow) string {
	if row.Void {
		return ""
	}
	s := o.footer.Slot
	switch {
	case s == nil:
		return fmt.Sprintf("it is a %s, a slot was absorbed there", o.footer.Kind)
	case s.Chain != row.Chain || s.ID != row.ID:
		return fmt.Sprintf("it is slot %d of chain %s", s.ID, s.Chain)
	case s.UUID != row.UUID || s.Digest != row.Digest:
		return fmt.Sprintf("it is segment %s of digest %016x, absorbed was %s of %016x", s.UUID, s.Digest, row.UUID, row.Digest)
	case s.Term != row.Term || s.Next != row.Next:
		return fmt.Sprintf("it is of term %d and ends before seq %d, absorbed was term %d before seq %d", s.Term, s.Next, row.Term, row.Next)
	}
	return o.metaOther(row)
}

// metaOther holds the metadata, by which a HEAD tells an owner whose rows stand there,
// against the row. A copy may have been brought back without it.
func (o *object) metaOther(row *catalog.SlotRow) string {
	meta, err := segment.ParseMeta(o.info.Meta)
	if err != nil || meta.UUID == row.UUID && meta.Digest == row.Digest {
		return ""
	}
	return fmt.Sprintf("its metadata says segment %s of digest %016x, absorbed was %s of %016x", meta.UUID, meta.Digest, row.UUID, row.Digest)
}

// restingSlot looks into an absorbed slot that no ref names. Its rows are served from
// settled objects; a new owner of the chain fills its disk from it until it is trimmed.
func (w *walk) restingSlot(ctx context.Context, at place, f seen) error {
	why := ""
	for look := 1; look <= 2; look++ {
		o, err := readObject(ctx, at.store, f.key)
		switch {
		case errors.Is(err, objstore.ErrNotFound):
			return nil // trimmed since it was listed, or slotMissing tells
		case unsound(err):
			why = err.Error()
		case err != nil:
			return passed(w.pass(ctx, at, f.key, fmt.Errorf("read the footer of %s: %w", f.key, err)))
		default:
			w.add(func(r *Report) { r.Footers++ })
			if why = o.otherThan(f.slot); why == "" && w.cfg.Deep {
				why, err = w.digResting(ctx, at, f.key, o.footer)
			}
		}
		if err != nil && !unsound(err) {
			return err
		}
		if why == "" || f.slot.Void {
			return nil
		}
	}
	row, err := w.cat.Chain(ctx, f.slot.Chain)
	if err != nil || f.slot.ID < row.Trimmed {
		return err
	}
	w.rotten(RottenItem{Key: f.key, Bucket: at.store.Name(), Why: why + noOwner})
	return nil
}

// noOwner is what a rotten slot means that no live row needs.
const noOwner = "; no live row needs it, but no owner can fill its disk from it"

// digResting reads every chunk of a slot that no ref names.
func (w *walk) digResting(ctx context.Context, at place, key string, f *segment.Footer) (why string, err error) {
	d := &digging{key: key, footer: f, all: true}
	if err := w.digAll(ctx, at, d); err != nil || len(d.faults) == 0 {
		return "", err
	}
	return d.faults[0].why, nil
}

// slotMissing looks for an absorbed slot that the deciding bucket did not list and that no
// ref named when they were read. The cursors are read after its absence: from condemned on,
// nobody deletes it.
func (w *walk) slotMissing(ctx context.Context, at place, f seen) error {
	_, _, err := at.store.ReadSuffix(ctx, f.key, 1)
	if there, err := stands(ctx, at.store, f.key, err); err != nil || there {
		return err
	}
	row, err := w.cat.Chain(ctx, f.slot.Chain)
	if err != nil || f.slot.ID < row.Condemned {
		return err
	}
	refs, err := w.cat.Liveness(ctx, f.key)
	if err != nil {
		return err
	}
	if len(refs) > 0 { // absorbed since the refs were read, or about to be walked
		return w.named(ctx, at, seen{key: f.key, refs: refs, slot: f.slot})
	}
	owed, err := w.hasMarker(ctx, catalog.DutySettle, catalog.SettleID(f.slot.Chain, f.slot.ID))
	if err != nil {
		return err
	}
	if owed && f.slot.Void {
		w.add(func(r *Report) {
			r.addDamage(w.cfg.MaxFindings, DamageItem{
				Epoch: f.slot.Epoch, First: f.slot.First, Last: max(f.slot.First, f.slot.Next) - 1, Key: f.key, Bucket: at.store.Name(),
				Why: "a void slot that holds rows, kept until accept-loss, is not in the bucket",
			})
		})
		return nil
	}
	if owed {
		if accepted, err := w.acceptedLost(ctx, f.slot); err != nil || accepted {
			return err // its settle marker waits for the pass that resolves it
		}
	}
	why := "it is gone, and its chain has not condemned it: something else deletes in this bucket (a lifecycle rule?); every live row of it is served by settled objects"
	if owed {
		why = "it is gone and still owes a settle, though no live row of it is left: something else deletes in this bucket (a lifecycle rule?)"
	}
	w.rotten(RottenItem{Key: f.key, Bucket: at.store.Name(), Why: why})
	return nil
}

// acceptedLost says whether an operator gave up rows of the slot as lost, after proving
// that it is gone. The refs that tell end within its seqs.
func (w *walk) acceptedLost(ctx context.Context, slot *catalog.SlotRow) (bool, error) {
	for from := slot.First; from < slot.Next; {
		page, err := w.cat.ChainRefs(ctx, slot.Chain, from, w.cfg.Page)
		if err != nil {
			return false, fmt.Errorf("refs of slot %d of chain %s: %w", slot.ID, slot.Chain, err)
		}
		for i := range page {
			r := &page[i]
			if r.Last >= slot.Next {
				return false, nil
			}
			if r.Kind == catalog.RefLost {
				return true, nil
			}
			from = r.Last + 1
		}
		if len(page) < w.cfg.Page {
			return false, nil
		}
	}
	return false, nil
}
