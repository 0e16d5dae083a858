package orphan

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Deleter is the hand that deletes. Its dry form deletes nothing and records what
// would go, and why the rest stays; whoever holds it changes nothing in the
// catalog either. It is safe for concurrent use.
type Deleter struct {
	classes objstore.Classes
	dry     bool
	gate    catalog.Gate                    // nil: open
	ask     func(ctx context.Context) error // nil: deletes may go on

	mu    sync.Mutex // lines
	lines []Line
}

// Line is one decision of a dry run.
type Line struct {
	Key    string        `json:"key"`
	Class  segment.Class `json:"class,omitempty"`
	Goes   bool          `json:"goes"`
	Reason string        `json:"reason"`
}

// maxLines bounds what a dry run remembers.
const maxLines = 100_000

// NewDeleter deletes from the buckets of each class.
func NewDeleter(classes objstore.Classes) *Deleter { return &Deleter{classes: classes} }

// Asking makes d send each request that deletes through gate, and ask behind it: an error of
// either is its result, and nothing was deleted. What was judged due by a clock that stepped
// since the pass began is so seen before it goes (I4).
func (d *Deleter) Asking(gate catalog.Gate, ask func(ctx context.Context) error) *Deleter {
	d.gate, d.ask = gate, ask
	return d
}

// Through makes an act that is no delete yet, and says in a chain's head what will be deleted.
func (d *Deleter) Through(ctx context.Context, act func(ctx context.Context) error) error {
	if d.gate == nil {
		return act(ctx)
	}
	return d.gate(ctx, act)
}

// NewDryRun records and deletes nothing.
func NewDryRun(classes objstore.Classes) *Deleter { return &Deleter{classes: classes, dry: true} }

// Dry says whether this is the dry form.
func (d *Deleter) Dry() bool { return d.dry }

// Slots deletes slots from every bucket of class: a key is gone when it is gone
// everywhere, and absence is fine. There is one result for each key, in order. The
// caller has proven by the chain's cursors that nothing wants them. It refuses
// keys that are no slots: settled keys go through Delete and its Rights only.
func (d *Deleter) Slots(ctx context.Context, class segment.Class, keys []string) ([]objstore.DeleteResult, error) {
	for _, key := range keys {
		if k, err := segment.ParseKey(key); err != nil || k.Kind != segment.KeySlot {
			return nil, fmt.Errorf("%w: %s is no slot: nothing was deleted", objstore.ErrInvalid, key)
		}
	}
	return d.keys(ctx, class, keys)
}

// TrimRecords deletes records of a chain's trim journal that a snapshot replaced. It
// refuses every other key.
func (d *Deleter) TrimRecords(ctx context.Context, class segment.Class, keys []string) ([]objstore.DeleteResult, error) {
	for _, key := range keys {
		if k, err := segment.ParseKey(key); err != nil || k.Kind != segment.KeyTrim {
			return nil, fmt.Errorf("%w: %s is no trim record: nothing was deleted", objstore.ErrInvalid, key)
		}
	}
	return d.keys(ctx, class, keys)
}

func (d *Deleter) keys(ctx context.Context, class segment.Class, keys []string) (results []objstore.DeleteResult, err error) {
	if d.dry {
		return nil, fmt.Errorf("%w: a dry run deletes nothing", objstore.ErrInvalid)
	}
	set, err := d.classes.Set(string(class))
	if err != nil {
		return nil, err
	}
	err = d.Through(ctx, func(ctx context.Context) error {
		if d.ask != nil {
			if err := d.ask(ctx); err != nil {
				return err
			}
		}
		// A fail-over here: what goes was given up in the catalog that was looked at, and the
		// newest copy of it says so, too.
		results, err = set.Delete(ctx, keys)
		return err
	})
	return results, err
}

// WouldGo records that a key would be deleted.
func (d *Deleter) WouldGo(class segment.Class, key, reason string) {
	d.record(Line{Key: key, Class: class, Goes: true, Reason: reason})
}

// Stays records why a key is kept; only the dry form remembers it.
func (d *Deleter) Stays(class segment.Class, key, reason string) {
	d.record(Line{Key: key, Class: class, Reason: reason})
}

func (d *Deleter) record(l Line) {
	if !d.dry {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.lines) < maxLines {
		d.lines = append(d.lines, l)
	}
}

// Lines is what a dry run decided so far, at most 100,000 lines.
func (d *Deleter) Lines() []Line {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}
