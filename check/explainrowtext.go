package check

import (
	"fmt"

	"github.com/strandline/strandline/catalog"
)

// explainRow turns facts into sentences. It is pure: all it knows of the world is in f.
func explainRow(f *RowFacts) *Explanation {
	e := &Explanation{Subject: fmt.Sprintf("stream %q, row %s", f.Stream, f.pos()), Kind: "row", Row: f, Why: []string{}, Next: []string{}}
	f.whereabouts(e)
	switch {
	case f.Forked != "":
		e.is(IsForked, "the history went on without it")
		e.next("%s", f.Forked)
	case f.Tip.Less(f.pos()):
		f.beyondIs(e)
	case f.pos().Less(f.LiveFrom):
		f.givenUpIs(e)
	case f.Ref == nil:
		f.unservedIs(e)
	case f.Ref.Kind == string(catalog.RefLost):
		e.is(IsLost, "accepted as lost by an operator: readers get a clear error for rows %d to %d", f.Ref.First, f.Ref.Last)
		e.next("nothing brings it back; the audit table says who gave it up and why")
	default:
		f.servedIs(e)
	}
	if e.Situation != BeyondTip && e.Situation != NoRow && e.Situation != IsForked {
		for _, step := range f.Way {
			e.why("way: %s", step)
		}
	}
	return e
}

// whereabouts says which chain has the row and who wrote it.
func (f *RowFacts) whereabouts(e *Explanation) {
	if f.Chain == nil {
		return
	}
	from := "its first row"
	if f.LiveFrom.Seq > 0 {
		from = f.LiveFrom.String()
	}
	e.why("chain %s of its shard; the stream is live from %s on, its last row is %s", f.Chain.Chain, from, f.Tip)
	if f.Owner != nil {
		e.why("written under term %d by owner %s", f.Term, *f.Owner)
	}
}

func (f *RowFacts) beyondIs(e *Explanation) {
	e.is(BeyondTip, "no such row in the shared tier: the stream's last is %s", f.Tip)
	c := f.Chain
	if c == nil {
		return
	}
	switch {
	case f.Epoch == f.Tip.Epoch && f.Seq < c.NextSeq:
		e.next("nothing: the chain is absorbed up to seq %d, so this seq is another stream's", c.NextSeq-1)
	case c.Closed:
		e.next("nothing: the chain is closed, no row of it comes any more")
	case f.Now.Before(c.LeaseEnd):
		e.next("if it was acknowledged as local, its owner %s (%s) has it on its disk until it publishes: read it there, by GET /v1/streams/STREAM/rows", c.Owner, firstText(c.Address, "no address"))
	default:
		e.next("no owner lives (the lease ended %s): a row that was acknowledged as local is on the disk of owner %s, and comes when that directory is opened again", relative(f.Now, c.LeaseEnd), c.Owner)
	}
}

// givenUpIs says who gave a row up.
func (f *RowFacts) givenUpIs(e *Explanation) {
	byStream := f.pos().Less(f.Own)
	switch {
	case byStream && f.Deleted:
		e.is(IsDeleted, "the stream was deleted (strandline rm); readers skip it")
	case byStream:
		e.is(IsTrimmed, "given up by a trim of its stream (live from %s); readers skip it", f.Own)
	default:
		e.is(IsTrimmed, "given up by retention: its chain's watermark is %d; readers skip it", f.Chain.Watermark)
	}
	debt := f.Teardown
	if !byStream {
		debt = f.Reclaim
	}
	switch {
	case f.Ref == nil:
		e.next("nothing: no ref of it stands any more")
	case debt != nil:
		e.next("%s retires its ref to %s: %s", debt.Duty, f.Ref.Key, debt.when(f.Now))
	default:
		e.next("%s still names it, for it holds live rows, too, or the walk is about to retire the ref", f.Ref.Key)
	}
	if f.Object != nil {
		f.Object.reapNext(e)
	}
}

// unservedIs: no ref covers the position, though it is live.
func (f *RowFacts) unservedIs(e *Explanation) {
	if f.NextGiven {
		e.is(NoRow, "no ref of its epoch serves it or comes behind it")
		e.why("the stream's next rows were of a newer epoch, whose chain gave them up")
		e.next("nothing, if the epoch's rows end before it: seqs count a chain's rows, and this one is another stream's")
		return
	}
	if f.Next != nil && f.NextAfter.Less(f.pos()) {
		e.is(NoRow, "the stream has no row there: the next is %d.%d", f.Next.Epoch, f.Next.First)
		if f.NextAfter.Seq > 0 {
			e.why("the row before is %s", f.NextAfter)
		}
		e.next("nothing: seqs count a chain's rows, and this one is another stream's")
		return
	}
	e.is(IsMissing, "no ref serves it, and the stream's refs do not link over it")
	e.next("run strandline fsck for the rows concerned; bring the newest copy of the catalog back (a rebuild from the bucket comes with a later release)")
}

// servedIs: a ref covers the position.
func (f *RowFacts) servedIs(e *Explanation) {
	r := f.Ref
	e.why("%s %s serves rows %d to %d of the stream, %s rows", r.Kind, r.Key, r.First, r.Last, commas(int64(r.Rows)))
	if !f.objectServes(e) {
		return
	}
	c := f.Chunk
	e.why("in %s, in the chunk at byte %s, %s bytes stored (%s), %s raw, rows %d to %d", c.Bucket, commas(c.Offset), commas(c.Stored), c.Codec, commas(c.Raw), c.First, c.Last)
	switch {
	case f.Read == nil && f.Dense:
		e.is(IsLive, "served by %s %s", r.Kind, r.Key)
	case f.Read == nil:
		e.is(IsLive, "if it is a row of this stream, which only reading tells (--read): its %s %s serves %s rows in seqs %d to %d", r.Kind, r.Key, commas(int64(r.Rows)), r.First, r.Last)
	case f.Read.Unread:
		e.is(IsUnreadable, "the bytes of its chunk could not be read")
		e.why("%s", f.Read.Broken)
		f.Object.unreadNext(e)
		return
	case f.Read.Broken != "":
		e.is(IsDamaged, "no bucket gives its chunk whole")
		e.why("%s", f.Read.Broken)
		e.next("bring %s back from a copy or a backup of the bucket; strandline fsck --deep says which rows are concerned", r.Key)
		e.next("if there is none: strandline accept-loss %s %q gives them up", r.Key, f.Stream)
		return
	case !f.Read.Found:
		e.is(NoRow, "the stream has no row there: the chunk was read, and the seq is another stream's")
	default:
		e.is(IsLive, "read whole from %s", f.Read.Bucket)
		e.why("its time is %s, its payload %s bytes%s; all %s rows of the chunk decode", f.Read.Time.Format("2006-01-02T15:04:05.000Z07:00"), commas(int64(f.Read.Payload)), f.txnText(), commas(int64(f.Read.Rows)))
	}
	f.objectNext(e)
}

func (f *RowFacts) txnText() string {
	if f.Read.Txn == "" {
		return ""
	}
	return fmt.Sprintf(", transaction %q", f.Read.Txn)
}

// objectServes says whether the object is there and covers the row; if not, what is wrong.
func (f *RowFacts) objectServes(e *Explanation) bool {
	switch {
	case f.Object == nil || !f.Object.exists():
		e.is(IsMissing, "a ref says that %s serves it, and no bucket has that object", f.Ref.Key)
	case !f.Object.sound() && f.Object.unread():
		e.is(IsUnreadable, "%s serves it, and its bytes could not be read", f.Ref.Key)
		f.Object.places(e)
		f.Object.unreadNext(e)
	case !f.Object.sound():
		e.is(IsDamaged, "%s serves it, and is not what was put there", f.Ref.Key)
		f.Object.places(e)
	case f.Chunk == nil:
		e.is(NoRow, "no chunk of %s holds the seq: it is another stream's", f.Ref.Key)
		for _, r := range f.Object.Refs {
			if r.Trouble != "" && r.Stream == f.Stream {
				e.is(IsDamaged, "%s does not cover its ref: %s", f.Ref.Key, r.text())
			}
		}
	default:
		return true
	}
	if e.Situation.Bad() {
		e.next("strandline explain %s tells what to do", f.Ref.Key)
	}
	return false
}

// objectNext is what happens to the object next, in the words of its own explanation.
func (f *RowFacts) objectNext(e *Explanation) {
	of, err := explainKey(f.Object)
	if err != nil {
		return
	}
	e.why("its object (%s): %s", of.Situation, of.Summary)
	e.Next = append(e.Next, of.Next...)
}
