package check

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// heldByDesign says of an object that no ref names that it stands for good reason although
// nothing is owed: of a slot, that a durable consumer has not passed it, or that nothing
// settles there and the watermark has not given it up; of a doctor's throw-away key, that
// it may be at work: no duty owes that, and an hour later it is garbage by itself.
func heldByDesign(s standing, settles bool) bool {
	if s.key.Kind == segment.KeyDoctor {
		return true
	}
	c := s.chain
	if c == nil || s.key.ID < c.Rewritten || s.key.ID >= c.AbsorbedEnd {
		return false
	}
	return len(c.Consumers) > 0 || !settles && s.key.ID > c.WatermarkSegment
}

// duties whose markers end when their work is done. A sweep's stands always.
var ending = []catalog.Duty{
	catalog.DutySettle, catalog.DutyPackMerge, catalog.DutyGC, catalog.DutyTailFill, catalog.DutyReapCheck,
	catalog.DutyTrimCheck, catalog.DutyOrphan, catalog.DutyReclaim, catalog.DutyTeardown,
}

// settled holds I5 from outside: after duties ran dry no intent stands and no marker, but for
// those of burned keys, which stand until their keys can no longer be derived.
func (w *walk) settled(ctx context.Context) error {
	if err := w.noIntents(ctx); err != nil {
		return err
	}
	for _, duty := range ending {
		for after := ""; ; {
			page, err := w.cat.MarkersOf(ctx, duty, after, w.cfg.Page)
			if err != nil {
				return fmt.Errorf("read the markers of %s: %w", duty, err)
			}
			for i := range page {
				after = page[i].ID
				if err := w.owedMarker(ctx, &page[i]); err != nil {
					return err
				}
			}
			if len(page) < w.cfg.Page {
				break
			}
		}
	}
	return nil
}

func (w *walk) noIntents(ctx context.Context) error {
	for after := ""; ; {
		page, err := w.cat.Intents(ctx, after, w.cfg.Page)
		if err != nil {
			return fmt.Errorf("read the intents: %w", err)
		}
		for i := range page {
			if after = page[i].Key; page[i].State != catalog.IntentBurned {
				w.owe(OwedItem{What: "intent", ID: after, Why: fmt.Sprintf("%s, for %s", page[i].State, page[i].Serves)})
			}
		}
		if len(page) < w.cfg.Page {
			return nil
		}
	}
}

func (w *walk) owedMarker(ctx context.Context, m *catalog.Marker) error {
	if m.Duty == catalog.DutyOrphan {
		s := standing{}
		if err := w.intent(ctx, m.ID, &s); err != nil || s.intent != nil && s.intent.State == catalog.IntentBurned {
			return err
		}
	}
	why := fmt.Sprintf("due %s", relative(w.now, m.Due))
	if m.LastError != "" {
		why += fmt.Sprintf(", %d attempts, the last: %s", m.Attempts, m.LastError)
	}
	w.owe(OwedItem{What: string(m.Duty), ID: m.ID, Why: why})
	return nil
}
