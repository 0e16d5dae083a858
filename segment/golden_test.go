package segment

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// golden holds bytes against a committed hex dump, or text against itself.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if !bytes.HasSuffix([]byte(name), []byte(".txt")) {
		got = []byte(hex.Dump(got))
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s changed: these bytes stand on disks and in buckets.\ngot:\n%s\nwant:\n%s", name, got, want)
	}
}

func mustDo[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestGoldenSegment(t *testing.T) {
	b := smallSegment(t)
	golden(t, "segment", b.seal())
	golden(t, "fence", newBuilder(t, uuidOf(3), plainStart()).seal())
}

func TestGoldenPayloads(t *testing.T) {
	batch := mustDo(AppendBatch(nil, &Batch{
		Stream: "tenant-a", First: 300, Producer: "p-1", Sequence: 9,
		Rows: []Row{{Time: -5, Txn: []byte("t"), Payload: []byte("abc")}, {Time: 1 << 62, Payload: nil}},
	}))(t)
	golden(t, "batch", batch)
	st := plainStart()
	st.Consumers = []Consumer{{"b", 300}, {"a", 0}}
	st.Producers = []Producer{{"z", 1, 2, 3}, {"y", 1 << 40, 500, 500}}
	golden(t, "start", mustDo(AppendStart(nil, &st))(t))
	golden(t, "seal", AppendSeal(nil, Seal{Frames: 3, Next: 104, Digest: 0x0123456789abcdef}))
	golden(t, "consumer", mustDo(AppendConsumer(nil, Consumer{"billing", 1000}))(t))
}

// smallSlot is the slot of smallSegment.
func smallSlot(t testing.TB) ([]byte, *Footer) {
	seg := smallSegment(t).seal()
	p := mustDo(PlanBundle(bytes.NewReader(seg), int64(len(seg))))(t)
	var out bytes.Buffer
	f := mustDo(p.WriteTo(&out, BundleOptions{Object: uuidOf(9), Created: 1_700_000_001_000_000_000, Writer: "test 1", Sealed: 1_700_000_000_500_000_000}))(t)
	return out.Bytes(), f
}

// A slot's bytes depend on the compressor's release, so this one is only read:
// what was published once must give its segment back for ever.
func TestGoldenSlot(t *testing.T) {
	obj := fromDump(t, "slot", func() []byte { b, _ := smallSlot(t); return b })
	f := reopen(t, obj)
	var back memFile
	if err := RestoreSegment(f, rawOf(obj, f), &back); err != nil || !bytes.Equal(back.b, smallSegment(t).seal()) {
		t.Errorf("a committed slot no longer gives its segment back: %v", err)
	}
	want := mustDo(EncodeFooter(f))(t)
	if got := AppendTrailer(want, trailerOf(want, f.ChunksEnd())); !bytes.Equal(got, obj[f.ChunksEnd():]) {
		t.Errorf("its footer and trailer are encoded differently now:\n%s", hex.Dump(got))
	}
}

// fromDump reads the bytes of a committed hex dump; -update writes it.
func fromDump(t *testing.T, name string, make func() []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update && make != nil {
		if err := os.WriteFile(path, []byte(hex.Dump(make())), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dump, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for line := range bytes.Lines(dump) {
		digits, _, _ := bytes.Cut(line, []byte("|"))
		for _, d := range bytes.Fields(digits)[1:] {
			b = append(b, mustDo(hex.DecodeString(string(d)))(t)...)
		}
	}
	return b[:len(b):len(b)]
}

func TestGoldenPackFooter(t *testing.T) {
	f := &Footer{Kind: ObjPack, Object: uuidOf(4), Created: 5, Writer: "test 1", Chunks: []Chunk{
		{Stream: "a", Epoch: 1, Shard: 2, First: 5, Last: 9, Rows: 3, Stored: 50, Raw: 100, Codec: CodecZstd, CRC: 1, Sum: 2, MinTime: -3, MaxTime: 4, Generation: 1, RowSum: 7},
		{Stream: "a", Epoch: 2, Shard: 2, First: 1, Last: 1, Rows: 1, Offset: 50, Stored: 30, Raw: 30, CRC: 1, Sum: 2, MinTime: 8, MaxTime: 8, RowSum: 7},
		{Stream: "ab", Epoch: 1, Shard: 2, First: 6, Last: 8, Rows: 2, Offset: 80, Stored: 64, Raw: 64, CRC: 3, Sum: 4, MinTime: 1, MaxTime: 2, Generation: 2, RowSum: 8},
	}}
	golden(t, "pack-footer", mustDo(EncodeFooter(f))(t))
}

func TestGoldenDocuments(t *testing.T) {
	golden(t, "checkpoint", EncodeCheckpoint(Checkpoint{uuidOf(2), 4096}))
	golden(t, "reclaim.txt", mustDo(EncodeReclaim(Reclaim{Seq: 99, Segment: 6}))(t))
	golden(t, "index.txt", mustDo(EncodeIndex(testIndex()))(t))
	golden(t, "identity.txt", mustDo(EncodeIdentity(Identity{Writer: uuidOf(5)}))(t))
	golden(t, "head.txt", mustDo(EncodeHead(testHead()))(t))
	golden(t, "stamp.txt", mustDo(EncodeStamp(Stamp{Deployment: uuidOf(6), Class: ClassStandard}))(t))
	golden(t, "topology.txt", mustDo(EncodeTopology(testTopology()))(t))
	golden(t, "trim.txt", mustDo(EncodeTrim(testTrim()))(t))
}

func TestGoldenKeys(t *testing.T) {
	var b bytes.Buffer
	for _, k := range sampleKeys() {
		b.WriteString(k + "\n")
	}
	golden(t, "keys.txt", b.Bytes())
}

func TestGoldenInspect(t *testing.T) {
	seg := smallSegment(t).seal()
	d := mustDo(DescribeSegment(bytes.NewReader(seg), int64(len(seg)), 100))(t)
	golden(t, "inspect-segment.txt", []byte(d.Text()))
	slot := fromDump(t, "slot", nil)
	o, need, err := DescribeObject(slot, int64(len(slot)), 100)
	if err != nil || need != 0 {
		t.Fatal(need, err)
	}
	golden(t, "inspect-slot.txt", []byte(o.Text()))
}
