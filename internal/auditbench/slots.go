package auditbench

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"github.com/strandline/strandline/segment"
)

// words make payloads that compress about as source code does.
var words = []string{
	"func", "return", "if err != nil {", "}", "for i := range", "package", "import", "struct", "context.Context", "// the",
	"string", "int64", "error", "nil", "append(", "make([]byte, 0, n)", "len(", ":=", "switch", "case", "default:", "var", "const",
	"interface", "map[string]", "defer", "go func()", "chan", "select", "type", "testing.T", "t.Fatal(err)", "x.clock", "r.Offset",
}

// lineBytes is about what a line of text takes, for planning.
const lineBytes = 40

// call is one append: rows of size noise bytes that do not compress, or, size 0, lines
// of text.
type call struct {
	stream     string
	rows, size int
}

// sealed is a slot's object that any tier may publish whose chain stands where the
// author's did.
type sealed struct {
	key    string
	object []byte
	meta   map[string]string
	footer *segment.Footer
}

// author writes one chain's segments, as its owner at its first term.
type author struct {
	chain segment.Chain
	owner segment.UUID
	next  segment.Seq
	id    segment.ID
	prev  segment.UUID
	rng   *rand.Rand
	now   func() time.Time
}

func newAuthor(now func() time.Time) *author {
	return &author{
		chain: segment.Chain{Epoch: 1}, owner: uuid.New(), next: 1, id: 1,
		rng: rand.New(rand.NewPCG(1, 2)), now: now, //nolint:gosec // what is measured should be the same in each run
	}
}

// seal makes the next slot.
func (a *author) seal(calls []call) (*sealed, error) {
	body, err := a.segment(calls)
	if err != nil {
		return nil, err
	}
	plan, err := segment.PlanBundle(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return nil, err
	}
	at := a.now().UnixNano()
	var object bytes.Buffer
	f, err := plan.WriteTo(&object, segment.BundleOptions{Object: uuid.New(), Created: at, Writer: "bench", Sealed: at})
	if err != nil {
		return nil, err
	}
	s := &sealed{key: segment.SlotKey(a.chain, a.id), object: object.Bytes(), meta: plan.Meta(), footer: f}
	a.id, a.prev = a.id+1, f.Slot.UUID
	return s, nil
}

// segment encodes a whole segment file.
func (a *author) segment(calls []call) ([]byte, error) {
	u := uuid.New()
	b := segment.AppendHeader(nil, u)
	frames := uint32(0)
	frame := func(kind segment.Kind, payload []byte, err error) error {
		if err == nil {
			b, err = segment.AppendFrame(b, u, int64(len(b)), kind, 0, payload)
		}
		frames++
		return err
	}
	p, err := segment.AppendStart(nil, &segment.Start{Chain: a.chain, ID: a.id, Base: a.next, Term: 1, Prev: a.prev, Created: a.now().UnixNano()})
	if err := frame(segment.KindStart, p, err); err != nil {
		return nil, err
	}
	var payload []byte
	for _, c := range calls {
		batch := segment.Batch{Stream: c.stream, First: a.next}
		batch.Rows = a.rows(c)
		payload, err = segment.AppendBatch(payload[:0], &batch)
		if err := frame(segment.KindBatch, payload, err); err != nil {
			return nil, err
		}
	}
	seal := segment.AppendSeal(nil, segment.Seal{Frames: frames, Next: a.next, Digest: xxhash.Sum64(b)})
	return b, frame(segment.KindSeal, seal, nil)
}

func (a *author) rows(c call) []segment.Row {
	rows := make([]segment.Row, c.rows)
	at := a.now().UnixNano()
	for i := range rows {
		rows[i] = segment.Row{Seq: a.next, Time: at + int64(i), Payload: a.payload(c.size)}
		a.next++
	}
	return rows
}

func (a *author) payload(size int) []byte {
	if size == 0 {
		return a.line()
	}
	p := make([]byte, 0, size+8)
	for len(p) < size {
		p = binary.LittleEndian.AppendUint64(p, a.rng.Uint64())
	}
	return p[:size]
}

func (a *author) line() []byte {
	b := make([]byte, 0, 2*lineBytes)
	for n := a.rng.IntN(8); n >= 0; n-- {
		b = append(b, words[a.rng.IntN(len(words))]...)
		b = append(b, ' ')
		if n%3 == 0 {
			b = append(b, 'v')
			b = strconv.AppendInt(b, int64(a.rng.IntN(1000)), 10)
		}
	}
	return b
}

// source are the calls of a slot as the standard library's source makes them: some 375
// streams of very different size, a row a line.
func (a *author) source(rawBytes int64) []call {
	const packages, rows = 375, 1000
	var out []call
	for left := rawBytes; left > 0; left -= rows * lineBytes {
		// A few packages are large, most are small.
		stream := int(packages * a.rng.Float64() * a.rng.Float64() * a.rng.Float64())
		out = append(out, call{stream: fmt.Sprintf("pkg/%03d", stream), rows: rows})
	}
	return out
}

// even are the calls of a slot in which streams of a range take equal parts of the bytes.
func (a *author) even(from, to int, rawBytes int64) []call {
	const most = 1000 // rows of a call
	var out []call
	for i := from; i < to; i++ {
		for left := max(1, int(rawBytes/int64(to-from)/lineBytes)); left > 0; left -= most {
			out = append(out, call{stream: fmt.Sprintf("even/%06d", i), rows: min(left, most)})
		}
	}
	return out
}
