package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// frames encodes rows of a stream as a chunk's raw bytes, one batch a call.
func chunkOf(t testing.TB, stream string, batches ...[]Row) []byte {
	t.Helper()
	var raw []byte
	for _, rows := range batches {
		buf, mark := BeginFrame(raw)
		buf = mustDo(AppendBatch(buf, &Batch{Stream: stream, First: rows[0].Seq, Rows: rows}))(t)
		raw = mustDo(EndFrame(buf, mark, uuidOf(1), int64(mark), KindBatch, 0))(t)
	}
	return raw
}

// randomChunk has gaps between its batches, as a stream in a chain has.
func randomChunk(t testing.TB, rng *rand.Rand, stream string) (raw []byte, rows []Row) {
	seq := Seq(1 + rng.IntN(100))
	var batches [][]Row
	for range 1 + rng.IntN(20) {
		rs := randomRows(rng, 1+rng.IntN(5))
		for i := range rs {
			rs[i].Seq = seq
			seq++
		}
		batches = append(batches, rs)
		rows = append(rows, rs...)
		seq += Seq(rng.IntN(4))
	}
	return chunkOf(t, stream, batches...), rows
}

func tallyOf(rows []Row, raw int) Tally {
	t := Tally{Raw: int64(raw)}
	for _, r := range rows {
		t.AddRow(r)
	}
	return t
}

func TestCutRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 300 {
		raw, rows := randomChunk(t, rng, "s")
		last := rows[len(rows)-1].Seq
		from, to := Seq(rng.IntN(int(last)+3)), Seq(rng.IntN(int(last)+3))
		out, tally, err := CutRows(raw, from, to)
		if err != nil {
			t.Fatal(err)
		}
		var want, got []Row
		for _, r := range rows {
			if r.Seq >= from && r.Seq <= to {
				want = append(want, r)
			}
		}
		for b, err := range Frames(out) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, b.Rows...)
		}
		if len(got) != len(want) {
			t.Fatalf("%d rows from %d to %d, want %d", len(got), from, to, len(want))
		}
		for i := range got {
			if !equalRow(got[i], want[i]) {
				t.Fatalf("row %+v, want %+v", got[i], want[i])
			}
		}
		if wt := tallyOf(want, len(out)); tally != wt {
			t.Fatalf("tally %+v, want %+v", tally, wt)
		}
	}
}

// Cut anywhere, the parts add up to the whole, and whole frames are verbatim.
func TestCutRowsPartsAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	raw, rows := randomChunk(t, rng, "s")
	whole := mustDo(TallyFrames(raw))(t)
	for at := rows[0].Seq; at <= rows[len(rows)-1].Seq; at++ {
		_, a, err := CutRows(raw, 0, at)
		_, b, err2 := CutRows(raw, at+1, ^Seq(0))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		a.Add(b)
		a.Raw = whole.Raw
		if a != whole {
			t.Fatalf("cut at %d: %+v, want %+v", at, a, whole)
		}
	}
	out, tally, err := CutRows(raw, 0, ^Seq(0))
	if err != nil || &out[0] != &raw[0] || len(out) != len(raw) || tally != whole {
		t.Error("the whole chunk was not taken verbatim", err)
	}
}

func TestSplitFrames(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	raw, _ := randomChunk(t, rng, "s")
	for target := int64(0); target < int64(len(raw))+10; target += 7 {
		var joined []byte
		for rest := raw; len(rest) > 0; {
			head, tail, err := SplitFrames(rest, target)
			if err != nil || len(head) == 0 {
				t.Fatal(len(head), err)
			}
			if _, err := TallyFrames(head); err != nil {
				t.Fatal(err)
			}
			if first := FrameLen(head); int64(len(head)) > max(target, first) {
				t.Fatalf("%d bytes for a target of %d", len(head), target)
			}
			joined, rest = append(joined, head...), tail
		}
		if !bytes.Equal(joined, raw) {
			t.Fatal("the parts are not the whole")
		}
	}
	for _, bad := range [][]byte{raw[:len(raw)-1], append(bytes.Clone(raw), 1)} {
		if _, _, err := SplitFrames(bad, 1<<30); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v", err)
		}
	}
}

func TestCutKeepsProducer(t *testing.T) {
	buf, mark := BeginFrame(nil)
	buf = mustDo(AppendBatch(buf, &Batch{Stream: "s", First: 5, Producer: "p", Sequence: 8, Rows: make([]Row, 4)}))(t)
	raw := mustDo(EndFrame(buf, mark, uuidOf(1), 0, KindBatch, 0))(t)
	out, _, err := CutRows(raw, 6, 7)
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range Frames(out) {
		if err != nil || b.Producer != "p" || b.Sequence != 8 || b.First != 6 || b.Last() != 7 {
			t.Errorf("%+v, %v", b, err)
		}
	}
}

func TestChunkContentIsChecked(t *testing.T) {
	a := chunkOf(t, "a", []Row{{Seq: 5}, {Seq: 6}})
	consumer := mustDo(AppendConsumer(nil, Consumer{"c", 1}))(t)
	for what, raw := range map[string][]byte{
		"two streams":      append(bytes.Clone(a), chunkOf(t, "b", []Row{{Seq: 9}})...),
		"seqs twice":       append(bytes.Clone(a), chunkOf(t, "a", []Row{{Seq: 6}})...),
		"a tail":           append(bytes.Clone(a), 0),
		"a consumer":       mustDo(AppendFrame(bytes.Clone(a), UUID{}, 0, KindAck, 0, consumer))(t),
		"a flipped bit":    append(a[:len(a)-1:len(a)-1], a[len(a)-1]^1),
		"a cut frame":      a[:len(a)-1],
		"a bad batch":      mustDo(AppendFrame(nil, UUID{}, 0, KindBatch, 0, []byte{0}))(t),
		"a batch too long": mustDo(AppendFrame(nil, UUID{}, 0, KindBatch, 0, append(bytes.Clone(a[FrameHeaderBytes:]), 0)))(t),
	} {
		if _, err := TallyFrames(raw); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: TallyFrames: %v", what, err)
		}
		if _, _, err := CutRows(raw, 0, ^Seq(0)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: CutRows: %v", what, err)
		}
		var last error
		for _, err := range Frames(raw) {
			last = err
		}
		if !errors.Is(last, ErrCorrupt) && what != "two streams" {
			t.Errorf("%s: Frames: %v", what, last)
		}
	}
}

func TestRowSumIsUnambiguous(t *testing.T) {
	base := Row{Seq: 1, Time: 2, Txn: []byte("ab"), Payload: []byte("cd")}
	for _, r := range []Row{
		{Seq: 2, Time: 1, Txn: base.Txn, Payload: base.Payload},
		{Seq: 1, Time: 2, Txn: []byte("a"), Payload: []byte("bcd")},
		{Seq: 1, Time: 2, Txn: []byte("abc"), Payload: []byte("d")},
		{Seq: 1, Time: 2, Txn: nil, Payload: []byte("abcd")},
		{Seq: 1, Time: 3, Txn: base.Txn, Payload: base.Payload},
	} {
		if RowSum(r) == RowSum(base) {
			t.Errorf("%+v sums to the same as %+v", r, base)
		}
	}
	spelled := "\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00abcd"
	if got := RowSum(base); got != 0xa546e35122d9963a || got != xxhash.Sum64String(spelled) {
		t.Errorf("the row sum is %#x: it stands in footers and catalogs", got)
	}
}

// An object of rows in every way a chunk gets in, read back.
func TestObjectWriter(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	var out bytes.Buffer
	o := NewObjectWriter(&out, &Footer{Kind: ObjPack, Object: uuidOf(1), Created: 3, Writer: "w"})
	var raws [][]byte
	add := func(stream string, how func(meta Chunk, raw []byte) error) {
		raw, _ := randomChunk(t, rng, stream)
		meta := Chunk{Stream: stream, Epoch: 1, Shard: 2, Generation: 1}
		meta.SetTally(mustDo(TallyFrames(raw))(t))
		if err := how(meta, raw); err != nil {
			t.Fatal(err)
		}
		raws = append(raws, raw)
	}
	add("a", o.AddChunk)
	// What another object stores is moved with its checksums.
	elsewhere := func(meta Chunk, raw []byte) (Chunk, []byte) {
		var b bytes.Buffer
		w := NewObjectWriter(&b, &Footer{Kind: ObjPack})
		if err := w.AddChunk(meta, raw); err != nil {
			t.Fatal(err)
		}
		f := mustDo(w.Finish())(t)
		return f.Chunks[0], b.Bytes()[:f.Chunks[0].Stored]
	}
	add("b", func(meta Chunk, raw []byte) error { return o.AddStored(elsewhere(meta, raw)) })
	add("c", func(meta Chunk, raw []byte) error {
		c, stored := elsewhere(meta, raw)
		out.Write(stored) // the store's own copy
		return o.AddCopied(c)
	})
	written := mustDo(o.Finish())(t)
	obj := out.Bytes()
	if o.Offset() != int64(len(obj)) {
		t.Errorf("offset %d of %d", o.Offset(), len(obj))
	}
	f := reopen(t, obj)
	if !reflect.DeepEqual(f, written) {
		t.Fatalf("reads back as\n%+v\nnot\n%+v", f, written)
	}
	for i, want := range raws {
		if got := mustDo(rawOf(obj, f)(i))(t); !bytes.Equal(got, want) {
			t.Errorf("chunk %d came back different", i)
		}
	}
	if err := o.AddCopied(written.Chunks[2]); err == nil {
		t.Error("added after Finish")
	}
}

func TestObjectWriterRefusals(t *testing.T) {
	raw := chunkOf(t, "m", []Row{{Seq: 5}, {Seq: 6}})
	good := Chunk{Stream: "m", Epoch: 2, Shard: 1}
	good.SetTally(mustDo(TallyFrames(raw))(t))
	with := func(change func(c *Chunk)) Chunk { c := good; change(&c); return c }
	for what, c := range map[string]Chunk{
		"stream before": with(func(c *Chunk) { c.Stream = "a" }),
		"epoch before":  with(func(c *Chunk) { c.Epoch = 1; c.First, c.Last = 7, 8 }),
		"same again":    good,
		"overlap":       with(func(c *Chunk) { c.First, c.Last = 6, 7 }),
		"too many rows": with(func(c *Chunk) { c.Stream = "z"; c.Rows = 3 }),
		"no rows":       with(func(c *Chunk) { c.Stream = "z"; c.Rows = 0 }),
		"bad name":      with(func(c *Chunk) { c.Stream = "~z" }),
		"reserved":      with(func(c *Chunk) { c.Stream = "" }),
		"times":         with(func(c *Chunk) { c.Stream = "z"; c.MinTime = 1 }),
	} {
		o := NewObjectWriter(io.Discard, &Footer{Kind: ObjPack})
		if err := o.AddChunk(good, raw); err != nil {
			t.Fatal(err)
		}
		if err := o.AddChunk(c, raw); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	o := NewObjectWriter(io.Discard, &Footer{Kind: ObjPack})
	if err := o.AddChunk(good, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an empty chunk: %v", err)
	}
	if err := o.AddStored(with(func(c *Chunk) { c.Stored = c.Raw; c.CRC = 1 }), raw); !errors.Is(err, ErrCorrupt) {
		t.Errorf("stored bytes that do not match: %v", err)
	}
	if err := o.AddStored(with(func(c *Chunk) { c.Stored = c.Raw + 1 }), raw); err == nil || IsStructural(err) {
		t.Errorf("stored bytes that came short: %v", err)
	}
	if _, err := o.Finish(); !errors.Is(err, ErrInvalid) {
		t.Errorf("an object without chunks: %v", err)
	}
	o = NewObjectWriter(io.Discard, &Footer{Kind: ObjStream})
	if err := errors.Join(o.AddChunk(good, raw), o.AddChunk(with(func(c *Chunk) { c.Stream = "z" }), raw)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Finish(); !errors.Is(err, ErrInvalid) {
		t.Errorf("a stream object of two streams: %v", err)
	}
}

func TestDecodeChunkRefusals(t *testing.T) {
	raw := chunkOf(t, "m", []Row{{Seq: 5, Payload: make([]byte, 5000)}})
	var out bytes.Buffer
	o := NewObjectWriter(&out, &Footer{Kind: ObjPack})
	meta := Chunk{Stream: "m", Epoch: 2, Shard: 1}
	meta.SetTally(mustDo(TallyFrames(raw))(t))
	if err := o.AddChunk(meta, raw); err != nil {
		t.Fatal(err)
	}
	c := mustDo(o.Finish())(t).Chunks[0]
	stored := out.Bytes()[:c.Stored]
	if c.Codec != CodecZstd {
		t.Fatal("not compressed")
	}
	for i := range len(stored) * 8 {
		b := bytes.Clone(stored)
		b[i/8] ^= 1 << (i % 8)
		if _, err := DecodeChunk(&c, b); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("bit %d: %v", i, err)
		}
	}
	// A read that came short is not a verdict.
	if _, err := DecodeChunk(&c, stored[:len(stored)-1]); err == nil || IsStructural(err) {
		t.Errorf("short: %v", err)
	}
	for what, change := range map[string]func(c *Chunk){
		"raw over the cap": func(c *Chunk) { c.Raw = ChunkRawMax + 1 },
		"raw less":         func(c *Chunk) { c.Raw-- },
		"raw more":         func(c *Chunk) { c.Raw++ },
		"codec unknown":    func(c *Chunk) { c.Codec = 7 },
		"codec none":       func(c *Chunk) { c.Codec = CodecNone },
	} {
		d := c
		change(&d)
		if _, err := DecodeChunk(&d, stored); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// bombs claim more, hold more, or say nothing of what they hold.
func TestDecompressionBombs(t *testing.T) {
	bomb := compress(nil, make([]byte, 32<<20))
	if len(bomb) > 1<<14 {
		t.Fatalf("the bomb has %d bytes", len(bomb))
	}
	for what, c := range map[string]struct {
		stored []byte
		want   int64
	}{
		"holds more than the table says":  {bomb, 1000},
		"two frames":                      {append(compress(nil, make([]byte, 1000)), bomb...), 1000},
		"cannot hold what the table says": {[]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 2, 1, 0, 0}, 32 << 20},
		"empty":                           {nil, 1000},
		"skippable":                       {[]byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4}, 1000},
		"rubbish":                         {[]byte("not zstd at all"), 1000},
	} {
		if got := testing.AllocsPerRun(1, func() {
			if _, err := decompress(nil, c.stored, c.want); err == nil {
				t.Errorf("%s: taken", what)
			}
		}); got > 200 {
			t.Errorf("%s: %v allocations", what, got)
		}
	}
	if raw, err := decompress(nil, bomb, 32<<20); err != nil || len(raw) != 32<<20 {
		t.Errorf("what the table says and is so: %d, %v", len(raw), err)
	}
}

// 50,000 streams: the most before a segment seals.
func TestLargeFooter(t *testing.T) {
	seg := newBuilder(t, uuidOf(1), plainStart())
	const streams = 50_000
	for i := range streams {
		seg.batch(fmt.Sprintf("tenant-%08d", i*7919%streams), Row{Time: int64(1e18) + int64(i)*1e6, Payload: []byte("0123456789")})
	}
	obj, _ := bundle(t, seg.seal(), BundleOptions{})
	size := int64(len(obj))
	f, need, err := OpenTail(obj[size-TailBytes:], size)
	if err != nil || f != nil || need <= TailBytes {
		t.Fatal(need, err)
	}
	if need > 4<<20 {
		t.Errorf("the footer of %d streams has %d bytes", streams, need)
	}
	if f, need, err = OpenTail(obj[size-need:], size); err != nil || need != 0 || len(f.Chunks) != streams+1 {
		t.Fatal(need, err)
	}
	t.Logf("footer: %d bytes, %d a stream", size-f.ChunksEnd(), (size-f.ChunksEnd())/streams)
}

func TestOpenTail(t *testing.T) {
	obj, _ := smallSlot(t)
	size := int64(len(obj))
	for n := range obj {
		f, need, err := OpenTail(obj[n:], size)
		whole := int64(n) <= reopen(t, obj).ChunksEnd()
		if err != nil || (f != nil) != whole || (need > 0) == whole || need > size {
			t.Fatalf("%d last bytes: %v, %d, %v", len(obj)-n, f, need, err)
		}
	}
	if _, _, err := OpenTail(nil, TrailerBytes-1); !errors.Is(err, ErrShortObject) || !IsStructural(err) {
		t.Errorf("short: %v", err)
	}
	if _, err := ParseTrailer(nil, 5000); err == nil || IsStructural(err) {
		t.Errorf("nothing was read: %v", err)
	}
	// An upload that never completed, and one with something behind it.
	for n := TrailerBytes; n < len(obj); n++ {
		if _, _, err := OpenTail(obj[:n], int64(n)); !IsStructural(err) {
			t.Fatalf("cut to %d: %v", n, err)
		}
	}
	if _, _, err := OpenTail(append([]byte{0}, obj...), size+1); !IsStructural(err) {
		t.Errorf("a byte before: %v", err)
	}
	v := bytes.Clone(obj)
	v[size-8] = 9
	if _, _, err := OpenTail(v, size); !errors.Is(err, ErrVersion) {
		t.Errorf("version: %v", err)
	}
}
