package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// RowQuestion names a row of a stream.
type RowQuestion struct {
	Stream string
	// Word is First or Last, or empty: then Pos counts.
	Word string
	Pos  segment.Pos
	// Token, if the position was one: its history is checked.
	Token *segment.Token
	// Read the chunk, and find the row in it.
	Read bool
}

// The words for positions.
const (
	FirstRow = "first" // the first live row
	LastRow  = "last"  // the stream's last absorbed row
)

// RowFacts is all that bucket and catalog say of a row.
type RowFacts struct {
	Stream   string        `json:"stream"`
	StreamID int64         `json:"stream_id"`
	Epoch    segment.Epoch `json:"epoch"`
	Seq      segment.Seq   `json:"seq"`
	Now      time.Time     `json:"now"`
	Forked   string        `json:"forked,omitempty"`
	// Own is what trim or rm gave up, LiveFrom with the chain's watermark.
	Own      segment.Pos   `json:"stream_live_from"`
	LiveFrom segment.Pos   `json:"live_from"`
	Tip      segment.Pos   `json:"tip"`
	Deleted  bool          `json:"deleted"`
	Chain    *ChainFact    `json:"chain,omitempty"`
	Term     segment.Term  `json:"term,omitempty"`
	Owner    *segment.UUID `json:"owner,omitempty"`
	// Slot is the segment that the row was written into, if its slot row still stands, at
	// SlotKey.
	Slot    *SlotFact `json:"slot,omitempty"`
	SlotKey string    `json:"slot_key,omitempty"`
	// Ref serves the position, or would, were it live; Dense says that every seq of it is a
	// row of the stream. Next follows where no ref does.
	Ref   *RefFact `json:"ref,omitempty"`
	Dense bool     `json:"dense"`
	Next  *RefFact `json:"next_ref,omitempty"`
	// NextAfter is the last row before Next; NextGiven says that a newer epoch's chain gave
	// it up, or, without Next, all that came behind the position.
	NextAfter segment.Pos `json:"next_after,omitzero"`
	NextGiven bool        `json:"next_after_given_up,omitempty"`
	Object    *KeyFacts   `json:"object,omitempty"` // of the ref
	Chunk     *ChunkFact  `json:"chunk,omitempty"`
	Read      *ReadFact   `json:"read,omitempty"`
	Teardown  *MarkerFact `json:"teardown,omitempty"`
	Reclaim   *MarkerFact `json:"reclaim,omitempty"`
	// Way are the objects that had the row, as far as the catalog still knows.
	Way []string `json:"way"`
}

// ChunkFact is where in its object the row lies.
type ChunkFact struct {
	Bucket string        `json:"bucket"`
	Offset int64         `json:"offset"`
	Stored int64         `json:"stored"`
	Raw    int64         `json:"raw"`
	Codec  string        `json:"codec"`
	First  segment.Seq   `json:"first"`
	Last   segment.Seq   `json:"last"`
	chunk  segment.Chunk // whole
}

// ReadFact is what reading the chunk gave.
type ReadFact struct {
	Found   bool      `json:"found"`
	Time    time.Time `json:"time,omitzero"`
	Txn     string    `json:"txn,omitempty"`
	Payload int       `json:"payload_bytes"`
	// Rows of the stream in the chunk, and the bucket that gave it whole.
	Rows   uint64 `json:"rows"`
	Bucket string `json:"bucket,omitempty"`
	// Broken says why no bucket gave it.
	Broken string `json:"broken,omitempty"`
	// Unread: a bucket may have it, and its read did not complete.
	Unread bool `json:"unread,omitempty"`
}

// Row explains a row. A stream that the catalog does not know is ErrNothing.
func (x *Explainer) Row(ctx context.Context, q RowQuestion) (*Explanation, error) {
	f := &RowFacts{Stream: q.Stream, Way: []string{}}
	s, err := x.Catalog.Stream(ctx, q.Stream)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, fmt.Errorf("%w: %q: no such stream; rows just appended show once their segment is published; see strandline streams", ErrNothing, q.Stream)
	}
	if err != nil {
		return nil, err
	}
	f.StreamID, f.Own, f.Tip, f.Deleted = s.ID, s.LiveFrom, s.Last, s.Deleted
	if f.Now, err = x.Catalog.Now(ctx); err != nil {
		return nil, err
	}
	if err := x.position(ctx, f, &q); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context, *RowFacts, *RowQuestion) error{
		x.rowChain, x.rowTerm, x.rowRef, x.rowSlot, x.rowDebts, x.rowObject, x.rowWay,
	} {
		if err := step(ctx, f, &q); err != nil {
			return nil, err
		}
	}
	return explainRow(f), nil
}

// position turns words into one.
func (x *Explainer) position(ctx context.Context, f *RowFacts, q *RowQuestion) error {
	switch q.Word {
	case "":
	case LastRow:
		q.Pos = f.Tip
	case FirstRow:
		p, err := x.Catalog.Plan(ctx, catalog.PlanRequest{Stream: q.Stream, Limit: 1})
		if err != nil && !errors.Is(err, catalog.ErrNotFound) {
			return err
		}
		if len(p.Refs) == 0 {
			q.Pos = f.Tip
			break
		}
		if q.Pos = p.Refs[0].FirstPos(); q.Pos.Less(p.LiveFrom) {
			q.Pos = p.LiveFrom
		}
	default:
		return fmt.Errorf("%w: position %q: give first, last, a seq, EPOCH.SEQ or a token like e1.t3.4711", ErrNothing, q.Word)
	}
	f.Epoch, f.Seq = q.Pos.Epoch, q.Pos.Seq
	return nil
}

func (f *RowFacts) pos() segment.Pos { return segment.Pos{Epoch: f.Epoch, Seq: f.Seq} }

func (x *Explainer) rowChain(ctx context.Context, f *RowFacts, q *RowQuestion) error {
	tops, err := x.Catalog.Topologies(ctx)
	if err != nil {
		return err
	}
	for i := range tops {
		if tops[i].Epoch != f.Epoch {
			continue
		}
		c := segment.Chain{Epoch: f.Epoch, Shard: segment.ShardOf(q.Stream, tops[i].Shards)}
		if f.Chain, err = x.chainFact(ctx, c); err != nil || f.Chain == nil {
			return err
		}
		f.LiveFrom = catalog.EffectiveLiveFrom(f.Own, c, f.Chain.Watermark)
		return nil
	}
	return fmt.Errorf("%w: there is no epoch %d; see strandline topology show", ErrNothing, f.Epoch)
}

func (f *RowFacts) chain() (segment.Chain, bool) {
	if f.Chain == nil {
		return segment.Chain{}, false
	}
	c, err := catalog.ParseChainID(f.Chain.Chain)
	return c, err == nil
}

// rowTerm says who wrote the row: the earliest term whose rows reach it.
func (x *Explainer) rowTerm(ctx context.Context, f *RowFacts, q *RowQuestion) error {
	c, ok := f.chain()
	if !ok {
		return nil
	}
	terms, err := x.Catalog.Terms(ctx, c)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return err
	}
	for i := range terms {
		t := &terms[i]
		if t.First != 0 && t.LastSeq >= f.Seq && (f.Term == 0 || t.Term < f.Term) {
			f.Term, f.Owner = t.Term, &t.Owner
		}
	}
	if q.Token == nil {
		return nil
	}
	err = catalog.CheckToken(terms, *q.Token)
	if errors.Is(err, catalog.ErrForked) {
		f.Forked, err = err.Error(), nil
	}
	return err
}

// rowRef finds the ref that serves the position, dead ones included as long as they stand.
func (x *Explainer) rowRef(ctx context.Context, f *RowFacts, q *RowQuestion) error {
	p, err := x.Catalog.Plan(ctx, catalog.PlanRequest{Stream: q.Stream, From: f.pos(), Limit: 1})
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return err
	}
	if len(p.Refs) > 0 && !f.pos().Less(f.LiveFrom) {
		ref := &p.Refs[0]
		fact := refFact(ref, p.LiveIn(ref.Epoch))
		if f.pos().Less(ref.FirstPos()) {
			f.Next, f.NextAfter, f.NextGiven = &fact, ref.PrevLast, f.Epoch < ref.PrevLast.Epoch && p.Dead(ref.PrevLast)
			return nil
		}
		f.Ref, f.Dense = &fact, ref.Rows == uint64(ref.Last-ref.First)+1
		return nil
	}
	f.NextGiven = len(p.Refs) == 0 && f.Epoch < f.Tip.Epoch && p.Dead(f.Tip)
	c, ok := f.chain()
	if !ok {
		return nil
	}
	// Given up: the ref may still stand, until the walk retires it. One page is looked at.
	refs, err := x.Catalog.ChainRefs(ctx, c, f.Seq, 1000)
	if err != nil {
		return err
	}
	for i := range refs {
		if refs[i].StreamID == f.StreamID && refs[i].First <= f.Seq {
			fact := refFact(&refs[i], f.LiveFrom)
			f.Ref = &fact
			return nil
		}
	}
	return nil
}

// voidsInRow is how many void slots may follow each other: they say nothing of seqs.
const voidsInRow = 16

// rowSlot finds the slot row that has the seq: the first that ends beyond it, by halving, for
// positions have no holes.
func (x *Explainer) rowSlot(ctx context.Context, f *RowFacts, _ *RowQuestion) error {
	c, ok := f.chain()
	if !ok {
		return nil
	}
	low, high := segment.ID(1), f.Chain.AbsorbedEnd // the answer lies in [low, high)
	var best *catalog.SlotRow
	for low < high {
		mid := low + (high-low)/2
		rows, err := x.Catalog.Slots(ctx, c, mid, voidsInRow)
		if err != nil {
			return err
		}
		rows = slices.DeleteFunc(rows, func(s catalog.SlotRow) bool { return s.Void })
		switch {
		case len(rows) == 0 || rows[0].ID >= high:
			high = mid
		case rows[0].Next <= f.Seq:
			low = rows[0].ID + 1
		default:
			best = &rows[0]
			high = mid
		}
	}
	if best == nil || best.First > f.Seq {
		return nil
	}
	f.SlotKey = segment.SlotKey(c, best.ID)
	var err error
	f.Slot, err = x.slotFact(ctx, best)
	return err
}
