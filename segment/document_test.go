package segment

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/cespare/xxhash/v2"
)

func testIndex() *Index {
	return &Index{
		NextSeq: 104, Segment: 7, UUID: uuidOf(2), Term: 3, Bytes: 500, Frames: 5, Digest: "0123456789abcdef",
		Consumers: []Consumer{{"b<&>", 3}, {"a", 1}}, Producers: []Producer{{"p", 4, 90, 91}},
	}
}

func testHead() *Head {
	return &Head{
		Epoch: 1, Shard: 2, Term: 3, AbsorbedEnd: 9, NextSeq: 1<<63 + 1, LastUUID: uuidOf(2), WatermarkSeq: 50,
		WatermarkSegment: 4, Condemned: 5, Trimmed: 4, Consumers: []Consumer{{"a", 1}}, Nonce: "n-1",
	}
}

func testTopology() *TopologyRecord {
	return &TopologyRecord{Epoch: 1, Shards: 4, Class: "express", Buckets: []string{"x", "y"}, Settle: true, State: "open"}
}

func testTrim() *TrimRecord {
	return &TrimRecord{Epoch: 1, Shard: 2, N: 3, Streams: []StreamTrim{
		{Name: "b", LiveFrom: Pos{1, 7}}, {Name: "a", LiveFrom: Pos{2, 1}, Deleted: true},
	}}
}

// documents are all documents with a way to encode, to decode, and to encode
// what was decoded.
func documents(t testing.TB) map[string]struct {
	bytes []byte
	again func(b []byte) ([]byte, error)
} {
	type doc = struct {
		bytes []byte
		again func(b []byte) ([]byte, error)
	}
	return map[string]doc{
		"reclaim":  {mustDo(EncodeReclaim(Reclaim{Seq: 99, Segment: 6}))(t), again(DecodeReclaim, EncodeReclaim)},
		"index":    {mustDo(EncodeIndex(testIndex()))(t), again(DecodeIndex, EncodeIndex)},
		"identity": {mustDo(EncodeIdentity(Identity{Writer: uuidOf(5)}))(t), again(DecodeIdentity, EncodeIdentity)},
		"head":     {mustDo(EncodeHead(testHead()))(t), again(DecodeHead, EncodeHead)},
		"stamp":    {mustDo(EncodeStamp(Stamp{Deployment: uuidOf(6), Class: ClassStandard}))(t), again(DecodeStamp, EncodeStamp)},
		"topology": {mustDo(EncodeTopology(testTopology()))(t), again(DecodeTopology, EncodeTopology)},
		"trim":     {mustDo(EncodeTrim(testTrim()))(t), again(DecodeTrim, EncodeTrim)},
	}
}

func again[T any](dec func([]byte) (T, error), enc func(T) ([]byte, error)) func([]byte) ([]byte, error) {
	return func(b []byte) ([]byte, error) {
		v, err := dec(b)
		if err != nil {
			return nil, err
		}
		return enc(v)
	}
}

func TestDocumentsRoundTrip(t *testing.T) {
	for name, d := range documents(t) {
		got, err := d.again(d.bytes)
		if err != nil || !bytes.Equal(got, d.bytes) {
			t.Errorf("%s: %v\n%s%s", name, err, got, d.bytes)
		}
	}
	h := mustDo(DecodeHead(mustDo(EncodeHead(testHead()))(t)))(t)
	want := testHead()
	want.Version = 1
	if !reflect.DeepEqual(h, want) {
		t.Errorf("head %+v, want %+v", h, want)
	}
}

// Every flipped bit, every cut and every addition must be refused.
func TestDocumentsRefuseDamage(t *testing.T) {
	for name, d := range documents(t) {
		for i := range len(d.bytes) * 8 {
			b := bytes.Clone(d.bytes)
			b[i/8] ^= 1 << (i % 8)
			if _, err := d.again(b); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%s: bit %d flipped: %v", name, i, err)
			}
		}
		for n := range d.bytes {
			if _, err := d.again(d.bytes[:n]); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%s: cut to %d bytes: %v", name, n, err)
			}
		}
		if _, err := d.again(append(bytes.Clone(d.bytes), ' ')); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%s: with a byte more: %v", name, err)
		}
	}
}

// resigned is a document with a right digest.
func resigned(body string) []byte {
	return fmt.Appendf(nil, `%s,"digest":"%016x"}`+"\n", body[:len(body)-1], xxhash.Sum64String(body))
}

func TestDocumentsAreStrict(t *testing.T) {
	if r, err := DecodeReclaim(resigned(`{"version":1,"seq":9,"segment":2}`)); err != nil || r.Seq != 9 {
		t.Fatalf("the plain form: %+v, %v", r, err)
	}
	for what, body := range map[string]string{
		"unknown field":  `{"version":1,"seq":9,"segment":2,"more":1}`,
		"missing field":  `{"version":1,"seq":9}`,
		"repeated field": `{"version":1,"seq":8,"seq":9,"segment":2}`,
		"other case":     `{"version":1,"Seq":9,"segment":2}`,
		"space":          `{"version":1, "seq":9,"segment":2}`,
		"negative":       `{"version":1,"seq":-9,"segment":2}`,
		"not an object":  `[1,2,3]`,
	} {
		if _, err := DecodeReclaim(resigned(body)); !errors.Is(err, ErrCorrupt) || errors.Is(err, ErrVersion) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := DecodeReclaim(resigned(`{"version":2,"seq":9,"segment":2,"news":true}`))
	if !errors.Is(err, ErrVersion) {
		t.Errorf("a newer version: %v", err)
	}
}

func TestRecordsRefuseNonsense(t *testing.T) {
	h := testHead()
	h.Condemned = 10
	if _, err := EncodeHead(h); !errors.Is(err, ErrInvalid) {
		t.Errorf("condemned beyond absorbed_end: %v", err)
	}
	tr := testTrim()
	tr.Streams[1].Name = "b"
	if _, err := EncodeTrim(tr); !errors.Is(err, ErrInvalid) {
		t.Errorf("a stream twice: %v", err)
	}
	tp := testTopology()
	tp.State = "ajar"
	if _, err := EncodeTopology(tp); !errors.Is(err, ErrInvalid) {
		t.Errorf("unknown state: %v", err)
	}
	if _, err := EncodeIdentity(Identity{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("no writer: %v", err)
	}
	if _, err := EncodeStamp(Stamp{Class: "x"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("no deployment: %v", err)
	}
	x := testIndex()
	x.Consumers = []Consumer{{"a", 1}, {"a", 2}}
	if _, err := EncodeIndex(x); !errors.Is(err, ErrName) {
		t.Errorf("a consumer twice: %v", err)
	}
}

func TestCheckpoint(t *testing.T) {
	want := Checkpoint{uuidOf(2), 4096}
	b := EncodeCheckpoint(want)
	if got, err := DecodeCheckpoint(b); err != nil || got != want {
		t.Fatal(got, err)
	}
	for what, damage := range map[string]func(b []byte) []byte{
		"short":   func(b []byte) []byte { return b[:31] },
		"long":    func(b []byte) []byte { return append(b, 0) },
		"empty":   func([]byte) []byte { return nil },
		"magic":   func(b []byte) []byte { b[0] = 'X'; return b },
		"version": func(b []byte) []byte { b[4] = 2; return b },
		"flags":   func(b []byte) []byte { b[6] = 1; return b },
		"offset":  func(b []byte) []byte { b[31] = 0x80; return b },
	} {
		_, err := DecodeCheckpoint(damage(bytes.Clone(b)))
		if !errors.Is(err, ErrCorrupt) || errors.Is(err, ErrVersion) != (what == "version") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestSlotMeta(t *testing.T) {
	want := SlotMeta{uuidOf(3), 0xabc, 17}
	got, err := ParseMeta(want.Map())
	if err != nil || got != want {
		t.Fatal(got, err)
	}
	// Clients hand metadata out under different names.
	got, err = ParseMeta(map[string]string{
		"X-Amz-Meta-Strandline-Segment-Uuid": want.UUID.String(), "Strandline-Segment-Digest": "0000000000000abc",
		"strandline-segment-bytes": "17", "other": "x",
	})
	if err != nil || got != want {
		t.Fatal(got, err)
	}
	for name := range want.Map() {
		m := want.Map()
		m[name] = "?"
		if _, err := ParseMeta(m); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		delete(m, name)
		if _, err := ParseMeta(m); !errors.Is(err, ErrCorrupt) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestFileNames(t *testing.T) {
	for _, id := range []ID{0, 1, 255, 1<<64 - 1} {
		if got, ok := ParseFileName(FileName(id)); !ok || got != id {
			t.Errorf("%d: %d %t", id, got, ok)
		}
	}
	for _, bad := range []string{"", "1.seg", "000000000000000A.seg", "000000000000000a.torn", "000000000000000a.seg.tmp", "x000000000000000a.seg"} {
		if _, ok := ParseFileName(bad); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}
