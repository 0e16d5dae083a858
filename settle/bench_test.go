package settle

import (
	"fmt"
	"testing"

	"github.com/strandline/strandline/objstore/memstore"
)

// words make payloads that compress about as source code does.
var words = []string{
	"func", "return", "if err != nil {", "}", "for i := range", "package", "import", "struct", "context.Context", "// the",
	"string", "int64", "error", "nil", "append(", "make([]byte, 0, n)", "len(", ":=", "switch", "case", "default:", "var", "const",
	"interface", "map[string]", "defer", "go func()", "chan", "select", "type", "testing.T", "t.Fatal(err)", "x.clock", "r.Offset",
}

// source publishes slots of a chain as the standard library's source makes them:
// some 375 streams of very different size, a row a line.
func (x *tier) source(slots, rawBytes int) {
	x.t.Helper()
	for range slots {
		var ws []write
		for left := rawBytes / slots; left > 0; {
			// A few packages are large, most are small.
			stream := int(float64(375) * x.rng.Float64() * x.rng.Float64() * x.rng.Float64())
			w := write{stream: fmt.Sprintf("pkg/%03d", stream), rows: 1000, text: true}
			ws = append(ws, w)
			left -= w.rows * 40
		}
		x.slot(ws...)
	}
}

func (x *tier) line() []byte {
	var b []byte
	for n := x.rng.IntN(8); n >= 0; n-- {
		b = append(b, words[x.rng.IntN(len(words))]...)
		b = append(b, ' ')
		if n%3 == 0 {
			b = fmt.Appendf(b, "v%d", x.rng.IntN(1000))
		}
	}
	return b
}

// BenchmarkSettle is one batch of one chain: some 25 MB raw in four slots, and
// 250 MB raw in eight.
func BenchmarkSettle(b *testing.B) {
	for _, c := range []struct{ slots, raw int }{{4, 25 << 20}, {8, 250 << 20}} {
		b.Run(fmt.Sprintf("raw=%dMiB", c.raw>>20), func(b *testing.B) {
			b.ReportAllocs()
			var raw, stored, puts, gets int64
			var rows uint64
			for range b.N {
				b.StopTimer()
				x := newTierOn(b, memstore.Options{MinPart: 5 << 20, MinCopy: 5 << 20})
				x.lax = true
				x.source(c.slots, c.raw)
				x.rows = nil
				s := x.settler(Config{SettleAge: -1})
				b.StartTimer()
				rep := x.once(s)
				b.StopTimer()
				if rep.Resolved != c.slots || len(rep.Failures) != 0 {
					b.Fatalf("report %+v", rep)
				}
				raw, stored, rows = raw+rep.RawBytes, stored+rep.StoredBytes, rows+rep.Rows
				puts, gets = puts+rep.Requests.PutLike(), gets+rep.Requests.Requests["get"]
				b.StartTimer()
			}
			sec := b.Elapsed().Seconds()
			b.ReportMetric(float64(raw)/1e6/sec, "rawMB/s")
			b.ReportMetric(float64(rows)/sec, "rows/s")
			b.ReportMetric(float64(puts)/(float64(raw)/1e9), "puts/rawGB")
			b.ReportMetric(float64(gets)/(float64(raw)/1e9), "gets/rawGB")
			b.ReportMetric(float64(raw)/float64(stored), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}
