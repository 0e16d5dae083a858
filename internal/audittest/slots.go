package audittest

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Writer is the owner of the tier's one chain.
type Writer struct {
	x     *Tier
	Chain segment.Chain
	owner segment.UUID
	term  segment.Term
	next  segment.Seq
	id    segment.ID
	prev  segment.UUID

	// Consumers are those that the next segments carry.
	Consumers []segment.Consumer
}

// Write is one append call.
type Write struct {
	Stream string
	Rows   int
	Size   int // of a payload; they do not compress
}

// Next is the seq of the next row.
func (w *Writer) Next() segment.Seq { return w.next }

// Slot seals, publishes and absorbs a segment of these appends.
func (w *Writer) Slot(writes ...Write) segment.ID {
	w.x.T.Helper()
	f, key, size := w.publish(writes, segment.BundleOptions{})
	return w.absorb(f, key, size)
}

// Fence publishes and absorbs a segment without rows; closed ends the chain.
func (w *Writer) Fence(closed bool) segment.ID {
	w.x.T.Helper()
	f, key, size := w.publish(nil, segment.BundleOptions{Fence: true, Closed: closed})
	return w.absorb(f, key, size)
}

func (w *Writer) absorb(f *segment.Footer, key string, size int64) segment.ID {
	w.x.T.Helper()
	x := w.x
	_, err := x.DB.AbsorbSlot(x.Ctx(), absorb.FromFooter(f, absorb.Bucket{Set: objstore.Set{x.Store}, Class: segment.ClassStandard},
		key, size, absorb.Caller{Owner: w.owner, Term: w.term}))
	x.Must(err)
	return w.id - 1
}

// PublishOnly leaves the slot unabsorbed, as an owner does that dies there.
func (w *Writer) PublishOnly(writes ...Write) {
	w.x.T.Helper()
	w.publish(writes, segment.BundleOptions{})
}

func (w *Writer) publish(writes []Write, opt segment.BundleOptions) (*segment.Footer, string, int64) {
	w.x.T.Helper()
	x := w.x
	body := w.segment(writes)
	plan, err := segment.PlanBundle(bytes.NewReader(body), int64(len(body)))
	x.Must(err)
	var obj bytes.Buffer
	at := x.Clock.Now().UnixNano()
	opt.Object, opt.Created, opt.Writer, opt.Sealed = uuid.New(), at, "test", at
	f, err := plan.WriteTo(&obj, opt)
	x.Must(err)
	key := segment.SlotKey(w.Chain, w.id)
	_, err = x.Store.PutOnce(x.Ctx(), key, obj.Bytes(), plan.Meta())
	x.Must(err)
	w.id++
	w.prev = f.Slot.UUID
	return f, key, int64(obj.Len())
}

// segment encodes a whole segment file.
func (w *Writer) segment(writes []Write) []byte {
	x, u := w.x, uuid.New()
	b := segment.AppendHeader(nil, u)
	frames := uint32(0)
	frame := func(kind segment.Kind, payload []byte, err error) {
		x.Must(err)
		b, err = segment.AppendFrame(b, u, int64(len(b)), kind, 0, payload)
		x.Must(err)
		frames++
	}
	p, err := segment.AppendStart(nil, &segment.Start{Chain: w.Chain, ID: w.id, Base: w.next, Term: w.term, Prev: w.prev, Created: x.Clock.Now().UnixNano(), Consumers: w.Consumers})
	frame(segment.KindStart, p, err)
	for _, wr := range writes {
		batch := segment.Batch{Stream: wr.Stream, First: w.next}
		batch.Rows = w.rows(wr)
		p, err := segment.AppendBatch(nil, &batch)
		frame(segment.KindBatch, p, err)
	}
	seal := segment.AppendSeal(nil, segment.Seal{Frames: frames, Next: w.next, Digest: xxhash.Sum64(b)})
	frame(segment.KindSeal, seal, nil)
	return b
}

func (w *Writer) rows(wr Write) []segment.Row {
	rng := rand.New(rand.NewPCG(uint64(w.next), 7))
	rows := make([]segment.Row, wr.Rows)
	for i := range rows {
		p := make([]byte, max(wr.Size, 8)&^7)
		for off := 0; off < len(p); off += 8 {
			binary.LittleEndian.PutUint64(p[off:], rng.Uint64())
		}
		rows[i] = segment.Row{Seq: w.next, Time: w.x.Clock.Now().UnixNano() + int64(i), Payload: p}
		w.next++
	}
	return rows
}
