package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// uuidOf is a fixed UUID of version 7 for tests.
func uuidOf(n uint64) (u UUID) {
	binary.BigEndian.PutUint64(u[:], 0x0190_0000_0000_7000+n<<16)
	binary.BigEndian.PutUint64(u[8:], 0x8000_0000_0000_0000+n)
	return u
}

// builder writes a segment file in memory, as the writer does.
type builder struct {
	t      testing.TB
	b      []byte
	u      UUID
	next   Seq
	frames uint32
	synced uint32
	starts []int64 // offsets of the frames
}

func newBuilder(t testing.TB, u UUID, st Start) *builder {
	t.Helper()
	b := &builder{t: t, b: AppendHeader(nil, u), u: u, next: st.Base}
	p, err := AppendStart(nil, &st)
	if err != nil {
		t.Fatal(err)
	}
	b.frame(KindStart, p)
	b.sync()
	return b
}

func plainStart() Start {
	return Start{Chain: Chain{1, 2}, ID: 7, Base: 100, Term: 3, Prev: uuidOf(1), Created: 1_700_000_000_000_000_000}
}

func (b *builder) frame(k Kind, payload []byte) {
	b.t.Helper()
	b.starts = append(b.starts, int64(len(b.b)))
	out, err := AppendFrame(b.b, b.u, int64(len(b.b)), k, b.synced, payload)
	if err != nil {
		b.t.Fatal(err)
	}
	b.b = out
	b.frames++
}

// sync says that all bytes so far are fsynced: later frames carry it.
func (b *builder) sync() { b.synced = uint32(len(b.b)) }

func (b *builder) batch(stream string, rows ...Row) {
	b.t.Helper()
	p, err := AppendBatch(nil, &Batch{Stream: stream, First: b.next, Rows: rows})
	if err != nil {
		b.t.Fatal(err)
	}
	b.frame(KindBatch, p)
	b.next += Seq(len(rows))
}

func (b *builder) consumer(k Kind, name string, cursor Seq) {
	b.t.Helper()
	p, err := AppendConsumer(nil, Consumer{name, cursor})
	if err != nil {
		b.t.Fatal(err)
	}
	b.frame(k, p)
}

func (b *builder) seal() []byte {
	b.frame(KindSeal, AppendSeal(nil, Seal{Frames: b.frames, Next: b.next, Digest: xxhash.Sum64(b.b)}))
	return b.b
}

func row(t int64, payload string) Row { return Row{Time: t, Payload: []byte(payload)} }

// smallSegment is a fixed segment with a few frames of each kind, not sealed.
func smallSegment(t testing.TB) *builder {
	st := plainStart()
	st.Consumers = []Consumer{{"billing", 90}, {"audit", 99}}
	st.Producers = []Producer{{"p-1", 5, 80, 82}}
	b := newBuilder(t, uuidOf(2), st)
	b.batch("tenant-a", row(10, "one"), Row{Time: 12, Txn: []byte("tx"), Payload: []byte("two")})
	b.consumer(KindConsumerCreate, "late", 100)
	b.sync()
	b.batch("tenant-b", row(11, "three"))
	b.consumer(KindAck, "billing", 101)
	b.batch(AuditStream(2), row(13, "system record"))
	b.consumer(KindConsumerRemove, "audit", 0)
	b.sync()
	b.batch("tenant-a", row(9, "four"))
	return b
}

// randomSegment is a sealed segment of random content.
func randomSegment(t testing.TB, rng *rand.Rand, frames int) []byte {
	st := plainStart()
	st.Base = Seq(1 + rng.Uint64N(1<<40))
	for i := range rng.IntN(5) {
		st.Consumers = append(st.Consumers, Consumer{fmt.Sprintf("c%d", i), Seq(rng.Uint64N(1 << 30))})
	}
	b := newBuilder(t, uuidOf(rng.Uint64N(1<<20)), st)
	streams := 1 + rng.IntN(12)
	for range frames {
		switch rng.IntN(12) {
		case 0:
			kinds := []Kind{KindConsumerCreate, KindAck, KindConsumerRemove}
			b.consumer(kinds[rng.IntN(3)], fmt.Sprintf("c%d", rng.IntN(8)), Seq(rng.Uint64N(1<<30)))
		case 1:
			b.sync()
		case 2:
			b.batch(AuditStream(2), randomRows(rng, 1)...)
		default:
			b.batch(fmt.Sprintf("s/%d", rng.IntN(streams)), randomRows(rng, 1+rng.IntN(6))...)
		}
	}
	return b.seal()
}

func randomRows(rng *rand.Rand, n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = Row{Time: int64(rng.Uint64()) >> rng.IntN(64), Payload: randomBytes(rng, rng.IntN(400))}
		if rng.IntN(3) == 0 {
			rows[i].Txn = randomBytes(rng, 1+rng.IntN(20))
		}
	}
	return rows
}

// randomBytes compress about by half.
func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdef"[rng.IntN(16)]
	}
	return b
}

// memFile is a file in memory for RestoreSegment.
type memFile struct{ b []byte }

func (m *memFile) WriteAt(p []byte, off int64) (int, error) {
	if need := int(off) + len(p); need > len(m.b) {
		m.b = append(m.b, make([]byte, need-len(m.b))...)
	}
	return copy(m.b[off:], p), nil
}

func (m *memFile) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(m.b).ReadAt(p, off)
}

// validPrefix scans to the last valid frame and returns where it ends and what
// stopped the scan.
func validPrefix(t testing.TB, seg []byte) (end int64, u UUID, err error) {
	t.Helper()
	s, err := NewScanner(bytes.NewReader(seg), int64(len(seg)))
	if err != nil {
		return 0, UUID{}, err
	}
	for err == nil {
		_, err = s.Next()
	}
	return s.Offset(), s.UUID(), err
}

func equalRow(a, b Row) bool {
	return a.Seq == b.Seq && a.Time == b.Time && bytes.Equal(a.Txn, b.Txn) && bytes.Equal(a.Payload, b.Payload)
}
