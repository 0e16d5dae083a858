package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
)

func bundle(t testing.TB, seg []byte, opt BundleOptions) ([]byte, *Footer) {
	t.Helper()
	p := mustDo(PlanBundle(bytes.NewReader(seg), int64(len(seg))))(t)
	var out bytes.Buffer
	f := mustDo(p.WriteTo(&out, opt))(t)
	return out.Bytes(), f
}

// rawOf decodes a chunk of an object in memory.
func rawOf(obj []byte, f *Footer) func(i int) ([]byte, error) {
	return func(i int) ([]byte, error) {
		c := &f.Chunks[i]
		return DecodeChunk(c, obj[c.Offset:c.End()])
	}
}

func reopen(t testing.TB, obj []byte) *Footer {
	t.Helper()
	f, need, err := OpenTail(obj, int64(len(obj)))
	if err != nil || need != 0 {
		t.Fatal(need, err)
	}
	return f
}

// A slot is a permutation of its segment: there and back, byte for byte.
func TestBundleIsAPermutation(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range 60 {
		seg := randomSegment(t, rng, rng.IntN(300))
		obj, written := bundle(t, seg, BundleOptions{Object: uuidOf(1), Created: 1, Writer: "w", Sealed: 2})
		f := reopen(t, obj)
		if fmt.Sprintf("%+v", f.Chunks) != fmt.Sprintf("%+v", written.Chunks) || fmt.Sprintf("%+v", f.Slot) != fmt.Sprintf("%+v", written.Slot) {
			t.Fatalf("the footer reads back as\n%+v\nnot\n%+v", f, written)
		}
		var back memFile
		if err := RestoreSegment(f, rawOf(obj, f), &back); err != nil {
			t.Fatalf("segment %d: %v", i, err)
		}
		if !bytes.Equal(back.b, seg) {
			t.Fatalf("segment %d came back different", i)
		}
		checkSlotContent(t, seg, obj, f)
	}
}

// checkSlotContent holds chunk table and rows against the segment.
func checkSlotContent(t *testing.T, seg, obj []byte, f *Footer) {
	t.Helper()
	var want, got []string
	var wantSum, gotSum uint64
	s := mustDo(NewScanner(bytes.NewReader(seg), int64(len(seg))))(t)
	for {
		fr, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if fr.Kind != KindBatch {
			continue
		}
		b := mustDo(DecodeBatch(bytes.Clone(fr.Payload)))(t)
		for _, r := range b.Rows {
			want = append(want, fmt.Sprintf("%q %d %d %x %x", b.Stream, r.Seq, r.Time, r.Txn, r.Payload))
			wantSum += RowSum(r)
		}
	}
	for i := range f.Chunks {
		c := &f.Chunks[i]
		raw := mustDo(rawOf(obj, f)(i))(t)
		if c.Stream == "" {
			continue
		}
		if tally := mustDo(TallyFrames(raw))(t); !tally.Matches(c) {
			t.Fatalf("chunk says %+v, its rows %+v", c.Tally(), tally)
		}
		gotSum += c.RowSum
		for b, err := range Frames(raw) {
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range b.Rows {
				got = append(got, fmt.Sprintf("%q %d %d %x %x", b.Stream, r.Seq, r.Time, r.Txn, r.Payload))
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) || wantSum != gotSum {
		t.Fatalf("%d rows in the segment, %d in the slot; row sums %x and %x", len(want), len(got), wantSum, gotSum)
	}
	if f.Slot.Next != s.NextSeq() || f.Slot.Digest != s.Digest() || f.Slot.Length != int64(len(seg)) {
		t.Fatalf("slot says %+v", f.Slot)
	}
}

// More than one chunk a stream, of rows that compress well, badly and not.
func TestBundleChunkSizes(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	b := newBuilder(t, uuidOf(1), plainStart())
	noise := make([]byte, 1<<20)
	for range 14 {
		for i := 0; i < len(noise); i += 8 {
			le.PutUint64(noise[i:], rng.Uint64())
		}
		b.batch("noise", Row{Payload: noise})
		b.batch("zeros", Row{Payload: make([]byte, 3<<20)})
		b.batch("text", Row{Payload: randomBytes(rng, 100<<10)})
	}
	b.batch("zeros", Row{Payload: make([]byte, MaxFrameBytes-100)})
	seg := b.seal()
	obj, _ := bundle(t, seg, BundleOptions{})
	f := reopen(t, obj)
	count := map[string]int{}
	for _, c := range f.Chunks {
		count[c.Stream]++
		if c.Raw > ChunkRawMax || c.Stored > ChunkStoredTarget && c.Codec == CodecNone {
			t.Errorf("%q: %d raw, %d stored", c.Stream, c.Raw, c.Stored)
		}
		if (c.Codec == CodecNone) != (c.Stream == "noise") && c.Stream != "" {
			t.Errorf("%q is stored as %s", c.Stream, c.Codec)
		}
		if c.Codec == CodecZstd && c.Stored*100 > c.Raw*88 {
			t.Errorf("%q: %d of %d is not worth it", c.Stream, c.Stored, c.Raw)
		}
	}
	if count["noise"] < 2 || count["zeros"] > 6 || count["text"] != 1 || count[""] != 1 {
		t.Errorf("chunks %v", count)
	}
	calls := 0
	var back memFile
	err := RestoreSegment(f, func(i int) ([]byte, error) { calls++; return rawOf(obj, f)(i) }, &back)
	if err != nil || !bytes.Equal(back.b, seg) {
		t.Fatal("came back different", err)
	}
	if calls != 2*len(f.Chunks) {
		t.Errorf("%d calls for %d chunks of a segment over 64 MiB", calls, len(f.Chunks))
	}
}

func TestFenceBundle(t *testing.T) {
	seg := newBuilder(t, uuidOf(3), plainStart()).seal()
	obj, _ := bundle(t, seg, BundleOptions{Fence: true, Closed: true, ID: 12})
	f := reopen(t, obj)
	if !f.Slot.Fence || !f.Slot.Closed || f.Slot.ID != 12 || f.Slot.Rows() != 0 || len(f.Chunks) != 1 {
		t.Errorf("%+v", f.Slot)
	}
	var back memFile
	if err := RestoreSegment(f, rawOf(obj, f), &back); err != nil || !bytes.Equal(back.b, seg) {
		t.Error("came back different", err)
	}
	withRows := smallSegment(t).seal()
	p := mustDo(PlanBundle(bytes.NewReader(withRows), int64(len(withRows))))(t)
	if _, err := p.WriteTo(io.Discard, BundleOptions{Fence: true}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a fence with rows: %v", err)
	}
}

func TestBundleIdentity(t *testing.T) {
	seg := smallSegment(t).seal()
	p := mustDo(PlanBundle(bytes.NewReader(seg), int64(len(seg))))(t)
	id := p.Identity()
	if want := "[{billing 101} {late 100}]"; fmt.Sprint(id.Consumers) != want {
		t.Errorf("consumers %v, want %s", id.Consumers, want)
	}
	if m := mustDo(ParseMeta(p.Meta()))(t); m != id.Meta() || m.Length != int64(len(seg)) || m.UUID != uuidOf(2) {
		t.Errorf("%+v", m)
	}
	if p.Streams() != 3 || p.FenceOnly() {
		t.Errorf("%d streams", p.Streams())
	}
}

func TestApplyConsumer(t *testing.T) {
	m := map[string]Seq{"a": 5}
	for _, s := range []struct {
		k    Kind
		c    Consumer
		want string
	}{
		{KindAck, Consumer{"a", 4}, "map[a:5]"},
		{KindAck, Consumer{"a", 6}, "map[a:6]"},
		{KindAck, Consumer{"b", 6}, "map[a:6]"},
		{KindConsumerCreate, Consumer{"a", 1}, "map[a:6]"},
		{KindConsumerCreate, Consumer{"b", 1}, "map[a:6 b:1]"},
		{KindConsumerRemove, Consumer{"a", 0}, "map[b:1]"},
	} {
		if ApplyConsumer(m, s.k, s.c); fmt.Sprint(m) != s.want {
			t.Errorf("%s %+v: %v, want %s", s.k, s.c, m, s.want)
		}
	}
}

// A segment that is not sealed, or damaged anywhere, is never published.
func TestBundleRefusesDamage(t *testing.T) {
	open := smallSegment(t).b
	if _, err := PlanBundle(bytes.NewReader(open), int64(len(open))); !errors.Is(err, ErrCorrupt) {
		t.Errorf("not sealed: %v", err)
	}
	seg := smallSegment(t).seal()
	for i := range seg {
		b := bytes.Clone(seg)
		b[i] ^= 0x10
		if _, err := PlanBundle(bytes.NewReader(b), int64(len(b))); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
	for n := range seg {
		if _, err := PlanBundle(bytes.NewReader(seg[:n]), int64(n)); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut to %d: %v", n, err)
		}
	}
	// The disk says something else the second time.
	b := bytes.Clone(seg)
	p := mustDo(PlanBundle(bytes.NewReader(b), int64(len(b))))(t)
	b[len(b)-40] ^= 1
	if _, err := p.WriteTo(io.Discard, BundleOptions{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("changed since it was planned: %v", err)
	}
}

// Whatever byte of a slot is damaged, restoring it says so.
func TestRestoreRefusesDamage(t *testing.T) {
	obj, _ := smallSlot(t)
	seg := smallSegment(t).seal()
	for i := range obj {
		b := bytes.Clone(obj)
		b[i] ^= 0x10
		f, _, err := OpenTail(b, int64(len(b)))
		var back memFile
		if err == nil {
			err = RestoreSegment(f, rawOf(b, f), &back)
		}
		if !IsStructural(err) {
			t.Fatalf("byte %d: %v (same: %t)", i, err, bytes.Equal(back.b, seg))
		}
	}
	f := reopen(t, obj)
	boom := errors.New("boom")
	if err := RestoreSegment(f, func(int) ([]byte, error) { return nil, boom }, &memFile{}); !errors.Is(err, boom) || IsStructural(err) {
		t.Errorf("a chunk that cannot be read: %v", err)
	}
	if err := RestoreSegment(f, func(int) ([]byte, error) { return []byte("short"), nil }, &memFile{}); err == nil || IsStructural(err) {
		t.Errorf("a chunk that came short: %v", err)
	}
}

// Ordinals that do not undo the permutation are found by the digest or before.
func TestRestoreRefusesWrongOrdinals(t *testing.T) {
	obj, _ := smallSlot(t)
	for i := range reopen(t, obj).Chunks {
		f := reopen(t, obj)
		o := f.Chunks[i].Ordinals
		o[len(o)-1].First++
		var back memFile
		if err := RestoreSegment(f, rawOf(obj, f), &back); !errors.Is(err, ErrCorrupt) {
			t.Errorf("chunk %d: %v", i, err)
		}
	}
	f := reopen(t, obj)
	f.Slot.Digest++
	if err := RestoreSegment(f, rawOf(obj, f), &memFile{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("another digest: %v", err)
	}
}

// failingWriter fails from the n-th write on.
type failingWriter struct{ n int }

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.n--; w.n < 0 {
		return 0, errors.New("boom")
	}
	return len(p), nil
}

func TestBundleWriteErrors(t *testing.T) {
	seg := smallSegment(t).seal()
	p := mustDo(PlanBundle(bytes.NewReader(seg), int64(len(seg))))(t)
	for n := 0; ; n++ {
		f, err := p.WriteTo(&failingWriter{n}, BundleOptions{})
		if err == nil {
			if n != len(f.Chunks)+1 {
				t.Errorf("passed at %d writes of %d", n, len(f.Chunks)+1)
			}
			return
		}
		if IsStructural(err) || f != nil {
			t.Fatalf("write %d: %v", n, err)
		}
	}
}
