package drive

import (
	"errors"
	"fmt"
	"slices"

	"github.com/strandline/strandline/coldload"
)

// judge is pure.
func (seen *pruned) judge() []Claim {
	return []Claim{
		{"owner_gapless_from_base", seen.sees("the owner", seen.owner, givenUp(seen.ownerBelow, seen.watermark))},
		{"nonowner_coldload_coherent", seen.sees("a reader without a disk", seen.cold, seen.trimmedCold())},
		{"newowner_hydrate_coherent", seen.inherited()},
		{"shared_pruned", seen.sharedPruned()},
		{"bounded", seen.bounded()},
		{"other_shards_untouched", same("the other shards", seen.others, seen.othersThere)},
	}
}

// sees: all rows above the watermark, none at or below it.
func (seen *pruned) sees(who string, rows []event, below error) error {
	want := from(seen.acked, seen.watermark+1)
	if err := same(who, want, rows); err != nil {
		return err
	}
	if err := gapless(who, rows, seen.watermark+1, want[len(want)-1].Seq); err != nil {
		return err
	}
	return below
}

// trimmedCold: the bucket's reader was told where rows begin.
func (seen *pruned) trimmedCold() error {
	var scan *coldload.ScanError
	if seen.watermark == 0 || !errors.Is(seen.coldBelow, coldload.ErrTrimmed) || !errors.As(seen.coldBelow, &scan) || scan.First != seen.watermark+1 {
		return fmt.Errorf("a cold read at the watermark %d ended with: %w", seen.watermark, orServed(seen.coldBelow))
	}
	return nil
}

// inherited: the new owner pulled what is retained and nothing else, has the cursor, and goes on.
func (seen *pruned) inherited() error {
	if !seen.hydrated {
		return errors.New("the new owner did not hydrate")
	}
	if err := seen.sees("the new owner's disk", seen.heir, givenUp(seen.heirBelow, seen.watermark)); err != nil {
		return err
	}
	if seen.heirBase != seen.watermark+1 {
		return fmt.Errorf("the new owner's disk begins at seq %d, the watermark is %d", seen.heirBase, seen.watermark)
	}
	if seen.ack == 0 || seen.cursor != seen.ack {
		return fmt.Errorf("the cursor is %d at the new owner, acknowledged was %d", seen.cursor, seen.ack)
	}
	if last := seen.acked[len(seen.acked)-1].Seq; seen.next != last+1 {
		return fmt.Errorf("the new owner went on with seq %d, not %d", seen.next, last+1)
	}
	return nil
}

// sharedPruned: no slot at or below the watermark stands, and every one above it does.
func (seen *pruned) sharedPruned() error {
	if seen.through == 0 || seen.end <= seen.through {
		return errors.New("there is no watermark")
	}
	for _, id := range seen.after {
		if id <= seen.through {
			return fmt.Errorf("slot %d stands, the watermark's is %d", id, seen.through)
		}
	}
	for id := seen.through + 1; id < seen.end; id++ {
		if !slices.Contains(seen.after, id) {
			return fmt.Errorf("slot %d, above the watermark's %d, is gone", id, seen.through)
		}
	}
	return nil
}

// bounded: fewer slots than before, and never beyond the consumer.
func (seen *pruned) bounded() error {
	if len(seen.after) == 0 || len(seen.after) >= len(seen.before) {
		return fmt.Errorf("%d slots stood before, %d stand now", len(seen.before), len(seen.after))
	}
	if seen.watermark == 0 || seen.watermark > seen.ack {
		return fmt.Errorf("the watermark is %d, the consumer's cursor %d", seen.watermark, seen.ack)
	}
	return nil
}
