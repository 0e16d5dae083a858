package coldload

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// ShardRow is a row of a shard scan.
type ShardRow struct {
	Stream string
	Epoch  segment.Epoch
	segment.Row
}

// Scan yields the rows of a whole chain from a seq on, in seq order, each once,
// up to what is absorbed when the scan gets there. The zero from is the first row
// above the chain's watermark; an explicit one at or below it is ErrTrimmed.
//
// A chain's seqs have no holes, so every seq that a scan leaves out is a row of a
// stream that was trimmed or deleted past it: such rows are not shown, whether
// their bytes still stand in a slot or not. A slot is shared by all streams of its
// time and goes as a whole, so its bytes say nothing about what may be read; the stream's
// live_from does, and what a scan shows does not change when the slot goes. Rows of
// reserved streams (~audit/<shard>) are not shown either: Rows gives them by name. Any
// other missing row ends the scan with ErrLost or ErrCorrupt. Rows that an operator accepted as
// lost end it before the first of them, with the next row that is there in ScanError.First:
// the rows of other streams lie between a stream's lost ones, and a scan from there shows them.
//
// The rows of a trim that comes while the scan runs may be shown or not. The last
// pair carries an error if the scan could not be completed.
func (r *Reader) Scan(ctx context.Context, chain segment.Chain, from segment.Seq) iter.Seq2[ShardRow, error] {
	return func(yield func(ShardRow, error) bool) {
		defer r.begin()()
		sc := &scan{reader: r, chain: chain, next: from, yield: yield}
		if err := sc.told(ctx, sc.run(ctx)); err != nil && !sc.over {
			yield(ShardRow{}, err)
		}
	}
}

// scan is one call of Scan.
type scan struct {
	reader *Reader
	chain  segment.Chain
	next   segment.Seq // the first seq not dealt with yet
	yield  func(ShardRow, error) bool
	over   bool // the caller's loop ended

	slot   segment.ID // nothing before it holds next
	linked bool       // every stream's refs were seen to link from next to the tip
	stuck  replans

	byRefs segment.Seq // slots that begin before it are read by their refs (turn)
	loss   *ScanError  // rows that were accepted as lost and passed; what is there next is sought

	buffers buffers
}

// stretch is what serves the seqs from scan.next to end, as the catalog had it
// within one plan's life.
type stretch struct {
	end     segment.Seq // inclusive
	refs    []catalog.Ref
	lost    []catalog.Ref          // of rows that were accepted as lost, by their first
	live    map[string]segment.Seq // first live seq of each stream in refs and lost
	dense   bool                   // refs hold every row: true of a slot
	slot    string                 // its key
	expires time.Time
}

func (sc *scan) run(ctx context.Context) error {
	for first := true; ; first = false {
		asked := sc.reader.cfg.Clock() // before the queries: a plan is as old as its request
		row, err := sc.look(ctx, first)
		if err != nil {
			return err
		}
		if sc.next >= row.NextSeq {
			return nil
		}
		st, err := sc.plan(ctx, &row, asked)
		if err == nil {
			err = sc.deliver(ctx, st)
		}
		switch {
		case sc.over:
			return nil
		case err == nil:
		case sc.turn(ctx, &st, err):
		case isGone(err) || errors.Is(err, errPlanAged):
			if err := sc.again(err); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// look reads the chain's cursors and puts next above the watermark. A watermark
// that overtakes a scan under way gives up rows that were not delivered.
func (sc *scan) look(ctx context.Context, first bool) (catalog.ChainRow, error) {
	row, err := sc.reader.catalog.Chain(ctx, sc.chain)
	if err != nil {
		return row, fmt.Errorf("scan chain %s: %w", sc.chain, err)
	}
	if first && sc.next == 0 {
		sc.next = max(1, row.WatermarkSeq+1)
	}
	if sc.next <= row.WatermarkSeq {
		return row, &ScanError{Chain: sc.chain, At: sc.next, First: row.WatermarkSeq + 1, Kind: ErrTrimmed}
	}
	return row, nil
}

// plan finds what serves next. Slots from condemned on stand; a condemned one may
// go at any moment, and whatever it held was rewritten before: refs serve that.
func (sc *scan) plan(ctx context.Context, row *catalog.ChainRow, asked time.Time) (stretch, error) {
	settings, err := sc.reader.catalog.Settings(ctx)
	if err != nil {
		return stretch{}, fmt.Errorf("scan chain %s: %w", sc.chain, err)
	}
	now, err := sc.reader.catalog.Now(ctx)
	if err != nil {
		return stretch{}, fmt.Errorf("scan chain %s: %w", sc.chain, err)
	}
	expires := asked.Add(settings.PlanTTL(now))
	slot, err := sc.slotAt(ctx, row)
	if err != nil {
		return stretch{}, err
	}
	var st stretch
	switch {
	case slot == nil:
		st, err = sc.refStretch(ctx, row.NextSeq-1)
	case slot.First > sc.next:
		st, err = sc.refStretch(ctx, slot.First-1)
	case slot.First < sc.byRefs:
		st, err = sc.refStretch(ctx, slot.Next-1)
	default:
		st, err = sc.slotStretch(ctx, row, slot, expires)
	}
	if err != nil {
		return st, err
	}
	st.expires = expires
	st.live, err = sc.liveFrom(ctx, row, slices.Concat(st.refs, st.lost))
	return st, err
}

// liveFrom asks for the first live seq of every stream in refs.
func (sc *scan) liveFrom(ctx context.Context, row *catalog.ChainRow, refs []catalog.Ref) (map[string]segment.Seq, error) {
	live := make(map[string]segment.Seq)
	for i := range refs {
		name := refs[i].Stream
		if _, ok := live[name]; ok {
			continue
		}
		s, err := sc.reader.catalog.Stream(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("scan chain %s: stream %q: %w", sc.chain, name, err)
		}
		from := catalog.EffectiveLiveFrom(s.LiveFrom, sc.chain, row.WatermarkSeq)
		switch {
		case from.Epoch < sc.chain.Epoch:
			live[name] = 0
		case from.Epoch > sc.chain.Epoch:
			live[name] = row.NextSeq
		default:
			live[name] = from.Seq
		}
	}
	return live, nil
}

// again counts plans without progress; too many of them end the scan.
func (sc *scan) again(cause error) error {
	if sc.stuck.again(segment.Pos{Epoch: sc.chain.Epoch, Seq: sc.next}) < sc.reader.cfg.Replans {
		return nil
	}
	var gone *goneError
	if errors.As(cause, &gone) {
		return &ScanError{Chain: sc.chain, At: sc.next, Key: gone.key, Kind: ErrLost, Detail: "the catalog names an object that is not there"}
	}
	return &ScanError{
		Chain: sc.chain, At: sc.next, Kind: objstore.ErrUnavailable, Err: cause,
		Detail: fmt.Sprintf("planned %d times without delivering a row", sc.stuck.n),
	}
}

// replans counts plans at one position.
type replans struct {
	n  int
	at segment.Pos
}

func (p *replans) again(at segment.Pos) int {
	if at != p.at {
		p.at, p.n = at, 0
	}
	p.n++
	return p.n
}
