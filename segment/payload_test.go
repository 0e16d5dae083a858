package segment

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestBatchRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		want := Batch{Stream: fmt.Sprintf("s%d", i), First: Seq(1 + rng.Uint64N(math.MaxUint64-100)), Rows: randomRows(rng, 1+rng.IntN(20))}
		if i%3 == 0 {
			want.Producer, want.Sequence = "p", rng.Uint64()
		}
		p := mustDo(AppendBatch(nil, &want))(t)
		if len(p) != BatchBytes(&want) {
			t.Fatalf("%d bytes, %d were said", len(p), BatchBytes(&want))
		}
		got := mustDo(DecodeBatch(p))(t)
		if got.Stream != want.Stream || got.First != want.First || got.Producer != want.Producer || got.Sequence != want.Sequence || len(got.Rows) != len(want.Rows) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		for j := range want.Rows {
			want.Rows[j].Seq = want.First + Seq(j)
			if !equalRow(got.Rows[j], want.Rows[j]) {
				t.Fatalf("row %d is %+v, want %+v", j, got.Rows[j], want.Rows[j])
			}
		}
		s, first, rows, err := BatchSpan(p)
		if err != nil || s != want.Stream || first != want.First || rows != len(want.Rows) || got.Last() != first+Seq(rows)-1 {
			t.Fatal(s, first, rows, err)
		}
	}
}

func TestBatchRefusals(t *testing.T) {
	one := []Row{{}}
	for what, c := range map[string]struct {
		b    Batch
		kind error
	}{
		"no rows":       {Batch{Stream: "a", First: 1}, ErrInvalid},
		"seq 0":         {Batch{Stream: "a", Rows: one}, ErrInvalid},
		"seq overflow":  {Batch{Stream: "a", First: math.MaxUint64, Rows: one}, ErrInvalid},
		"no name":       {Batch{First: 1, Rows: one}, ErrName},
		"reserved":      {Batch{Stream: "~x", First: 1, Rows: one}, ErrName},
		"producer name": {Batch{Stream: "a", First: 1, Rows: one, Producer: "\xff"}, ErrName},
		"too large":     {Batch{Stream: "a", First: 1, Rows: []Row{{Payload: make([]byte, MaxFrameBytes)}}}, ErrTooLarge},
	} {
		if out, err := AppendBatch([]byte("x"), &c.b); !errors.Is(err, c.kind) || string(out) != "x" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestBatchDecodeRefusals(t *testing.T) {
	p := mustDo(AppendBatch(nil, &Batch{Stream: "abc", First: 1, Rows: []Row{{Payload: []byte("x")}}}))(t)
	for n := range p {
		if _, err := DecodeBatch(p[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	for what, b := range map[string][]byte{
		"a byte more":       append(bytes.Clone(p), 0),
		"unknown flag":      append([]byte{2}, p[1:]...),
		"long varint":       append([]byte{0, 0x83, 0x00}, p[2:]...),
		"rows beyond input": {0, 1, 'a', 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0},
	} {
		if _, err := DecodeBatch(b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A row count that the input does not justify allocates nothing.
func TestBatchDecodeIsBounded(t *testing.T) {
	b := []byte{0, 1, 'a', 1, 0x80, 0x80, 0x80, 0x01, 0, 0, 0} // 2 Mi rows in three bytes
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const runs = 1000
	for range runs {
		if _, err := DecodeBatch(b); err == nil {
			t.Fatal("taken")
		}
	}
	runtime.ReadMemStats(&after)
	bytesPerRun := (after.TotalAlloc - before.TotalAlloc) / runs
	if bytesPerRun > 4096 {
		t.Errorf("%d bytes allocated for %d", bytesPerRun, len(b))
	}
}

func TestStartRoundTrip(t *testing.T) {
	want := plainStart()
	for i := range MaxConsumers {
		want.Consumers = append(want.Consumers, Consumer{fmt.Sprintf("%s%05d", strings.Repeat("c", MaxConsumerName-5), i), Seq(i)})
	}
	for i := range MaxProducers {
		want.Producers = append(want.Producers, Producer{fmt.Sprintf("%s%05d", strings.Repeat("p", MaxProducerName-5), MaxProducers-i), math.MaxUint64, 1 << 60, 1<<60 + 5})
	}
	p := mustDo(AppendStart(nil, &want))(t)
	if len(p) > MaxFrameBytes {
		t.Fatalf("the largest SegmentStart has %d bytes", len(p))
	}
	if got := mustDo(DecodeStart(p))(t); !reflect.DeepEqual(got, want) {
		t.Error("a SegmentStart at its limits came back different")
	}
	want.Consumers = append(want.Consumers, Consumer{"one more", 1})
	if _, err := AppendStart(nil, &want); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a consumer too many: %v", err)
	}
	want.Consumers, want.Producers = nil, append(want.Producers, want.Producers[0])
	if _, err := AppendStart(nil, &want); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a producer too many: %v", err)
	}
}

func TestStartRefusals(t *testing.T) {
	st := plainStart()
	st.Consumers = []Consumer{{"a", 1}, {"b", 2}}
	st.Producers = []Producer{{"p", 1, 2, 3}}
	p := mustDo(AppendStart(nil, &st))(t)
	for n := range p {
		if _, err := DecodeStart(p[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	v := bytes.Clone(p)
	v[0] = 2
	if _, err := DecodeStart(v); !errors.Is(err, ErrVersion) || !errors.Is(err, ErrCorrupt) {
		t.Errorf("version: %v", err)
	}
	v = bytes.Clone(p)
	v[3] = 1
	if _, err := DecodeStart(v); !errors.Is(err, ErrCorrupt) {
		t.Errorf("reserved byte: %v", err)
	}
	if _, err := DecodeStart(bytes.Replace(p, []byte("\x01a\x01"), []byte("\x01b\x01"), 1)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a consumer twice: %v", err)
	}
	for what, bad := range map[string]Start{
		"no id":          {Base: 1},
		"no base":        {ID: 1},
		"consumer twice": {ID: 1, Base: 1, Consumers: []Consumer{{"a", 1}, {"b", 1}, {"a", 2}}},
		"producer span":  {ID: 1, Base: 1, Producers: []Producer{{"a", 1, 5, 4}}},
	} {
		if out, err := AppendStart([]byte("x"), &bad); err == nil || string(out) != "x" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestSealAndConsumerRefusals(t *testing.T) {
	seal := AppendSeal(nil, Seal{3, 104, 5})
	if got, err := DecodeSeal(seal); err != nil || got != (Seal{3, 104, 5}) || len(seal) != sealBytes {
		t.Fatal(got, err)
	}
	c := mustDo(AppendConsumer(nil, Consumer{"billing", 7}))(t)
	if got, err := DecodeConsumer(c); err != nil || got != (Consumer{"billing", 7}) {
		t.Fatal(got, err)
	}
	for n := range seal {
		if _, err := DecodeSeal(seal[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("seal cut to %d bytes: %v", n, err)
		}
	}
	for n := range c {
		if _, err := DecodeConsumer(c[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("consumer cut to %d bytes: %v", n, err)
		}
	}
	if _, err := DecodeSeal(append(seal, 0)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("seal with a byte more: %v", err)
	}
	if _, err := AppendConsumer(nil, Consumer{"", 1}); !errors.Is(err, ErrName) {
		t.Errorf("no name: %v", err)
	}
}
