package segment

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"
)

func TestScanReadsWhatWasWritten(t *testing.T) {
	b := smallSegment(t)
	seg := b.seal()
	s := mustDo(NewScanner(bytes.NewReader(seg), int64(len(seg))))(t)
	var kinds []Kind
	for i := 0; ; i++ {
		f, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || f.Offset != b.starts[i] {
			t.Fatal(f, err)
		}
		kinds = append(kinds, f.Kind)
	}
	if want := "[start batch consumer-create batch ack batch consumer-remove batch seal]"; stringsOf(kinds) != want {
		t.Errorf("frames %s, want %s", stringsOf(kinds), want)
	}
	if s.Offset() != int64(len(seg)) || s.NextSeq() != 105 || s.Frames() != 9 || s.Sealed() == nil || s.Start().ID != 7 || s.UUID() != uuidOf(2) {
		t.Errorf("%d %d %d %v", s.Offset(), s.NextSeq(), s.Frames(), s.Sealed())
	}
}

// Rows of a frame are its batch's, whether a Scanner read what stands before them or not.
func TestFrameRows(t *testing.T) {
	b := newBuilder(t, uuidOf(1), plainStart())
	batches := []Batch{
		{Stream: "s", First: 100, Rows: []Row{row(5, "one")}},
		{Stream: "s", First: 101, Producer: "p", Sequence: 9, Rows: []Row{row(-5, ""), {Time: 7, Txn: []byte("t"), Payload: []byte("three")}}},
	}
	for i := range batches {
		b.frame(KindBatch, mustDo(AppendBatch(nil, &batches[i]))(t))
	}
	torn := mustDo(AppendBatch(nil, &Batch{Stream: "s", First: 103, Rows: []Row{row(1, "four")}}))(t)
	b.frame(KindBatch, torn[:len(torn)-1]) // whole by its CRC, and too short for its row
	s := mustDo(NewScanner(bytes.NewReader(b.b), int64(len(b.b))))(t)
	mustDo(s.Next())(t)
	for _, batch := range batches {
		f := mustDo(s.Next())(t)
		want := mustDo(DecodeBatch(f.Payload))(t).Rows
		scanned, err := rowsOf(f)
		fresh, err2 := rowsOf(Frame{Payload: f.Payload})
		if err = errors.Join(err, err2); err != nil || len(want) != len(batch.Rows) || !reflect.DeepEqual(scanned, want) || !reflect.DeepEqual(fresh, want) {
			t.Errorf("rows %v and %v, want %v: %v", scanned, fresh, want, err)
		}
	}
	f := mustDo(s.Next())(t)
	_, want := DecodeBatch(f.Payload)
	if rows, err := rowsOf(f); len(rows) > 0 || err == nil || err.Error() != want.Error() {
		t.Errorf("%d rows of a damaged payload, %v; want %v", len(rows), err, want)
	}
}

func rowsOf(f Frame) (out []Row, err error) {
	var row Row
	rows := f.Rows()
	for rows.Next(&row) {
		out = append(out, row)
	}
	return out, rows.Err()
}

func stringsOf(k []Kind) string {
	s := "["
	for i, x := range k {
		if i > 0 {
			s += " "
		}
		s += x.String()
	}
	return s + "]"
}

// A frame at the cap, and one that straddles the scanner's window.
func TestScanLargeFrames(t *testing.T) {
	b := newBuilder(t, uuidOf(1), plainStart())
	b.batch("s", Row{Payload: make([]byte, scanWindow-500)})
	b.batch("s", Row{Payload: make([]byte, 1000)})
	b.batch("s", Row{Payload: make([]byte, MaxFrameBytes-100)})
	b.batch("s", row(1, "end"))
	seg := b.seal()
	if end, _, err := validPrefix(t, seg); !errors.Is(err, io.EOF) || end != int64(len(seg)) {
		t.Fatal(end, len(seg), err)
	}
}

// Frames that validate and cannot stand where they stand.
func TestScanRefusesWrongOrder(t *testing.T) {
	for what, spoil := range map[string]func(b *builder){
		"a second start": func(b *builder) {
			st := plainStart()
			b.frame(KindStart, mustDo(AppendStart(nil, &st))(t))
		},
		"a gap in the seqs": func(b *builder) { b.next += 2; b.batch("s", row(1, "x")); b.batch("s", row(1, "y")) },
		"seqs twice":        func(b *builder) { b.next--; b.batch("s", row(1, "x")) },
		"a frame after Seal": func(b *builder) {
			b.seal()
			b.batch("s", row(1, "x"))
		},
		"wrong frame count": func(b *builder) { b.frames--; b.seal() },
		"wrong next":        func(b *builder) { b.next++; b.seal() },
		"wrong digest": func(b *builder) {
			b.frame(KindSeal, AppendSeal(nil, Seal{Frames: b.frames, Next: b.next, Digest: 1}))
		},
		"a batch that does not decode":    func(b *builder) { b.frame(KindBatch, []byte{0}) },
		"a consumer that does not decode": func(b *builder) { b.frame(KindAck, nil) },
	} {
		b := newBuilder(t, uuidOf(1), plainStart())
		b.batch("s", row(1, "x"))
		spoil(b)
		_, _, err := validPrefix(t, b.b)
		var c *CorruptionError
		if !errors.As(err, &c) || c.UUID != uuidOf(1) || c.Segment != 7 || c.Offset == 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	b := &builder{t: t, b: AppendHeader(nil, uuidOf(1)), u: uuidOf(1), next: 1}
	b.batch("s", row(1, "x"))
	if _, _, err := validPrefix(t, b.b); !errors.Is(err, ErrCorrupt) {
		t.Errorf("no start: %v", err)
	}
}

// A crash between writing Seal and truncating leaves bytes of the recycled file.
func TestScanLeftoversAfterSeal(t *testing.T) {
	b := newBuilder(t, uuidOf(1), plainStart())
	seg := b.seal()
	n := int64(len(seg))
	old := newBuilder(t, uuidOf(9), plainStart())
	for range 20 {
		old.batch("s", row(1, "stale"))
	}
	seg = append(seg, old.b[n:]...)
	end, u, err := validPrefix(t, seg)
	var inv *InvalidFrameError
	if !errors.As(err, &inv) || inv.Fault != FaultAfterSeal || end != n {
		t.Fatal(end, err)
	}
	tail, err := JudgeTail(bytes.NewReader(seg), int64(len(seg)), u, end, 0)
	if err != nil || !tail.Torn || tail.End != n || len(tail.Kept) != 0 && tail.Cut == 0 {
		t.Fatal(tail, err)
	}
}

// failingReader fails or comes short after n bytes.
type failingReader struct {
	b   []byte
	n   int64
	err error
}

func (r failingReader) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > r.n {
		return 0, r.err
	}
	return copy(p, r.b[off:]), nil
}

// A read that did not complete is never a verdict, wherever it happens.
func TestReadErrorsAreNoVerdict(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	seg := randomSegment(t, rng, 50)
	size := int64(len(seg))
	boom := errors.New("boom")
	for _, cause := range []error{boom, io.EOF, nil} {
		for _, n := range []int64{0, 10, 100, size - 1} {
			r := failingReader{seg, n, cause}
			_, err := PlanBundle(r, size)
			checkNoVerdict(t, "PlanBundle", err, cause)
			_, err = JudgeTail(r, size, uuidOf(1), size-50, 0)
			checkNoVerdict(t, "JudgeTail", err, cause)
			checkNoVerdict(t, "JudgeHeadless", JudgeHeadless(r, size), cause)
			_, err = DescribeSegment(r, size, 0)
			checkNoVerdict(t, "DescribeSegment", err, cause)
		}
	}
}

func checkNoVerdict(t *testing.T, what string, err, cause error) {
	t.Helper()
	want := cause
	if want == nil || errors.Is(want, io.EOF) {
		want = io.ErrUnexpectedEOF
	}
	if !errors.Is(err, want) || IsStructural(err) || errors.Is(err, ErrCorrupt) {
		t.Errorf("%s with %v: %v", what, cause, err)
	}
}
