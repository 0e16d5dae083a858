package coldload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// deliver yields a stretch in windows: all rows from next to some seq, merged by
// seq, as many as Config.MemoryBytes holds. Chunks that reach past a window are read again
// for the next one.
func (sc *scan) deliver(ctx context.Context, st stretch) error {
	sureOf := false
	for sc.next <= st.end {
		w := window{scan: sc, st: &st, end: st.end}
		if err := w.fill(ctx); err != nil {
			return err
		}
		w.sort()
		missing, err := w.check()
		if err != nil {
			return sc.doubt(ctx, &st, err)
		}
		if missing {
			if err := w.explain(ctx, sureOf); err != nil {
				return err
			}
			sureOf = true
		}
		if err := w.yield(ctx); err != nil || sc.over {
			return err
		}
	}
	return nil
}

// window is the rows of a scan from next to end.
type window struct {
	*scan
	st    *stretch
	end   segment.Seq // inclusive; falls as rows are given up for room
	rows  []ShardRow
	bytes int64
}

// rowBytes is what a row costs besides its bytes.
const rowBytes = 96

// fill reads every chunk that has rows of the window, object by object.
func (w *window) fill(ctx context.Context) error {
	for _, refs := range objects(w.st.refs) {
		if refs[0].First > w.end {
			break // objects come by their first row
		}
		if err := w.object(ctx, refs); err != nil {
			return err
		}
	}
	return nil
}

// objects groups refs by object, in order of the object's first row; within one, by
// offset, so that neighbours come in one GET. refs[0] begins first.
func objects(refs []catalog.Ref) [][]*catalog.Ref {
	byKey := map[string][]*catalog.Ref{}
	for i := range refs {
		byKey[refs[i].Key] = append(byKey[refs[i].Key], &refs[i])
	}
	out := make([][]*catalog.Ref, 0, len(byKey))
	for _, group := range byKey {
		slices.SortFunc(group, func(a, b *catalog.Ref) int { return cmp.Compare(a.First, b.First) })
		out = append(out, group)
	}
	slices.SortFunc(out, func(a, b []*catalog.Ref) int {
		return cmp.Or(cmp.Compare(a[0].First, b[0].First), cmp.Compare(a[0].Key, b[0].Key))
	})
	return out
}

// object adds the rows of one object's chunks.
func (w *window) object(ctx context.Context, refs []*catalog.Ref) error {
	pieces, err := w.pieces(ctx, refs)
	if err != nil {
		return err
	}
	pl := w.reader.start(ctx, &w.buffers, pieces, w.st.expires)
	defer pl.close()
	for f := range pl.queue {
		select {
		case <-f.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if f.err != nil {
			return w.inScan(f.err)
		}
		for i, raw := range f.raw {
			if err := w.chunk(&f.group.pieces[i], raw); err != nil {
				return err
			}
		}
		pl.delivered(f)
	}
	return context.Cause(ctx)
}

// pieces are the chunks of an object's refs that have rows of the window.
func (w *window) pieces(ctx context.Context, refs []*catalog.Ref) ([]piece, error) {
	var out []piece
	for _, ref := range refs {
		if ref.First > w.end || ref.Last < w.next || (!w.st.dense && ref.Last < w.st.live[ref.Stream]) {
			continue
		}
		// From the ref's begin: its chunks must add up to what it says, whatever is read.
		ps, err := w.reader.pieces(ctx, ref, 0, w.st.expires)
		if err != nil {
			return nil, w.inScan(err)
		}
		if err := w.tell(ref, ps); err != nil {
			return nil, err
		}
		for i := range ps {
			if p := &ps[i]; ref.Chunks == 1 || p.chunk.First <= w.end && p.chunk.Last >= w.next {
				out = append(out, *p)
			}
		}
	}
	slices.SortFunc(out, func(a, b piece) int { return cmp.Compare(a.chunk.Offset, b.chunk.Offset) })
	return out, nil
}

// tell fills in what each chunk must hold of its ref's rows: what the footer says of
// one that is wholly the ref's, and the rest of the ref's rows of one that is cut.
func (w *window) tell(ref *catalog.Ref, ps []piece) error {
	if ref.Chunks == 1 {
		ps[0].holds = &holds{ref.Rows, ref.RowSum}
		return nil
	}
	rest := holds{ref.Rows, ref.RowSum}
	var cut *piece
	for i := range ps {
		p := &ps[i]
		if p.chunk.First < ref.First || p.chunk.Last > ref.Last {
			if cut != nil {
				return nil // cut on both sides: only the sum of the two is known
			}
			cut = p
			continue
		}
		p.holds = &holds{p.chunk.Rows, p.chunk.RowSum}
		rest.rows -= p.chunk.Rows
		rest.sum -= p.chunk.RowSum
	}
	if cut != nil {
		cut.holds = &rest
		return nil
	}
	if rest != (holds{}) {
		return w.corrupt(&ps[0], fmt.Sprintf("its footer does not add up to the %d rows of sum %016x of the ref from %d to %d", ref.Rows, ref.RowSum, ref.First, ref.Last))
	}
	return nil
}

// chunk adds the rows of a chunk that lie in its ref and in the window, and proves
// that the ref's rows were all in it.
func (w *window) chunk(p *piece, raw []byte) error {
	var t segment.Tally
	live := w.st.live[p.ref.Stream]
	reserved := strings.HasPrefix(p.ref.Stream, "~")
	for batch, err := range segment.Frames(raw) {
		if err != nil {
			return w.corrupt(p, err.Error())
		}
		if batch.Stream != p.ref.Stream {
			return w.corrupt(p, fmt.Sprintf("a frame of stream %q stands in its chunk", batch.Stream))
		}
		for i := range batch.Rows {
			row := &batch.Rows[i]
			if row.Seq < p.ref.First || row.Seq > p.ref.Last {
				continue
			}
			t.AddRow(*row)
			if row.Seq >= w.next && row.Seq <= w.end {
				w.add(p.ref.Stream, row, row.Seq >= live && !reserved)
			}
		}
	}
	if p.holds != nil && (t.Rows != p.holds.rows || t.RowSum != p.holds.sum) {
		return w.corrupt(p, fmt.Sprintf("it holds %d rows of sum %016x, but should hold %d of %016x", t.Rows, t.RowSum, p.holds.rows, p.holds.sum))
	}
	return nil
}

// add keeps a row. A row that is not shown is kept by its seq alone: check counts it.
func (w *window) add(stream string, row *segment.Row, show bool) {
	r := ShardRow{Epoch: w.chain.Epoch, Row: segment.Row{Seq: row.Seq}}
	if show {
		r.Stream, r.Row = stream, row.Clone() // the chunk goes
	}
	w.rows = append(w.rows, r)
	w.bytes += cost(&r)
	if w.bytes > w.reader.share() && len(w.rows) > 1 {
		w.cut()
	}
}

func cost(r *ShardRow) int64 { return rowBytes + int64(len(r.Payload)+len(r.Txn)) }

// cut gives up the later rows, until half of the room is free: they are the next
// window's.
func (w *window) cut() {
	w.sort()
	keep := 1
	for n := cost(&w.rows[0]); keep < len(w.rows); keep++ {
		if n += cost(&w.rows[keep]); n > w.reader.share()/2 {
			break
		}
	}
	keep = min(keep, len(w.rows)-1)
	w.end = w.rows[keep].Seq - 1
	w.bytes = 0
	clear(w.rows[keep:])
	w.rows = w.rows[:keep]
	for i := range w.rows {
		w.bytes += cost(&w.rows[i])
	}
}

func (w *window) sort() {
	slices.SortFunc(w.rows, func(a, b ShardRow) int { return cmp.Compare(a.Seq, b.Seq) })
}

// check: no row twice. missing is whether seqs of the window have no row, which a
// dense stretch never has.
func (w *window) check() (missing bool, err error) {
	for i := 1; i < len(w.rows); i++ {
		if w.rows[i].Seq == w.rows[i-1].Seq {
			return false, &ScanError{
				Chain: w.chain, At: w.rows[i].Seq, Kind: ErrCorrupt,
				Detail: fmt.Sprintf("streams %q and %q both have this row", w.rows[i-1].Stream, w.rows[i].Stream),
			}
		}
	}
	missing = uint64(len(w.rows)) != uint64(w.end-w.next)+1
	if missing && w.st.dense {
		return true, &ScanError{
			Chain: w.chain, At: w.next, Key: w.st.slot, Kind: ErrCorrupt,
			Detail: fmt.Sprintf("it has %d rows from %d to %d", len(w.rows), w.next, w.end),
		}
	}
	return missing, nil
}

// yield gives the window's rows to the caller, but for what is behind a loss: that ends the scan
// with it (told).
func (w *window) yield(ctx context.Context) error {
	for i := range w.rows {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r := &w.rows[i]
		w.pass(r.Seq)
		if r.Stream != "" {
			if w.loss != nil {
				return w.loss
			}
			if !w.scan.yield(*r, nil) {
				w.over = true
				return nil
			}
		}
		w.next = r.Seq + 1
	}
	w.pass(w.end + 1)
	return nil
}

func (w *window) corrupt(p *piece, detail string) error {
	return &ScanError{Chain: w.chain, At: max(w.next, p.ref.First), Stream: p.ref.Stream, Key: p.ref.Key, Kind: ErrCorrupt, Detail: detail}
}

// inScan gives an error of a read the scan's context.
func (sc *scan) inScan(err error) error {
	var re *ReadError
	if !errors.As(err, &re) {
		return err
	}
	at := sc.next
	if re.At.Seq > at && re.At.Seq < math.MaxUint64 {
		at = re.At.Seq
	}
	return &ScanError{Chain: sc.chain, At: at, Stream: re.Stream, Key: re.Key, Kind: re.Kind, Detail: re.Detail, Err: re.Err}
}

func isTrimmed(err error) bool { return errors.Is(err, ErrTrimmed) || errors.Is(err, ErrDeleted) }
