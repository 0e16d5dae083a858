package check_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// million is a deployment that is made up as it is read: streams of 1,000 objects of one row
// each, in the order of their keys, and some packs that nothing names.
type million struct {
	check.Catalog
	objstore.Driver
	streams []string
	each    int
	leaked  int
}

func newMillion(objects int) *million {
	m := &million{each: 1000, leaked: 100}
	for i := range objects / m.each {
		m.streams = append(m.streams, fmt.Sprintf("stream-%d", i))
	}
	slices.SortFunc(m.streams, func(a, b string) int { return strings.Compare(segment.StreamPrefix(a), segment.StreamPrefix(b)) })
	return m
}

func (m *million) objects() int { return len(m.streams) * m.each }

var (
	oneChain = segment.Chain{Epoch: 1}
	oneTime  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// key of the i-th object.
func (m *million) key(i int) string {
	if i < m.objects() {
		return segment.StreamKey(m.streams[i/m.each], 1, segment.Seq(1+i%m.each), 0)
	}
	n := segment.ID(1 + i - m.objects())
	return segment.PackKey(oneChain, n, n, 0)
}

// object makes the object of a stream's row.
func object(stream string, seq segment.Seq) ([]byte, segment.Chunk, error) {
	rows := []segment.Row{{Seq: seq, Time: 1, Payload: []byte("a row")}}
	payload, err := segment.AppendBatch(nil, &segment.Batch{Stream: stream, First: seq, Rows: rows})
	if err != nil {
		return nil, segment.Chunk{}, err
	}
	raw, err := segment.AppendFrame(nil, uuid.UUID{1}, 0, segment.KindBatch, 0, payload)
	if err != nil {
		return nil, segment.Chunk{}, err
	}
	var buf bytes.Buffer
	o := segment.NewObjectWriter(&buf, &segment.Footer{Kind: segment.ObjStream, Object: uuid.UUID{2}, Created: 1, Writer: "test"})
	meta := segment.Chunk{
		Stream: stream, Epoch: 1, First: seq, Last: seq, Rows: 1, MinTime: 1, MaxTime: 1, RowSum: segment.RowSum(rows[0]),
		Stored: int64(len(raw)), Raw: int64(len(raw)), CRC: crc32.Checksum(raw, crc32.MakeTable(crc32.Castagnoli)), Sum: xxhash.Sum64(raw),
	}
	if err := o.AddStored(meta, raw); err != nil {
		return nil, meta, err
	}
	f, err := o.Finish()
	if err != nil {
		return nil, meta, err
	}
	return buf.Bytes(), f.Chunks[0], nil
}

// linked is a ref without its placement in the object.
func (m *million) linked(i int) catalog.Ref {
	seq := segment.Seq(1 + i%m.each)
	r := catalog.Ref{
		StreamID: int64(1 + i/m.each), Stream: m.streams[i/m.each], Chain: oneChain, First: seq, Last: seq, Key: m.key(i),
		Kind: catalog.RefStream, Class: segment.ClassStandard, Chunks: 1, Rows: 1,
	}
	if seq > 1 {
		r.PrevLast = segment.Pos{Epoch: 1, Seq: seq - 1}
	}
	return r
}

func (m *million) ref(i int) (catalog.LiveRef, error) {
	r := m.linked(i)
	_, c, err := object(r.Stream, r.First)
	r.Offset, r.Stored, r.Raw, r.Codec, r.CRC, r.Sum, r.RowSum = c.Offset, c.Stored, c.Raw, c.Codec, c.CRC, c.Sum, c.RowSum
	return catalog.LiveRef{Ref: r}, err
}

func (m *million) refs(from, limit int) (out []catalog.LiveRef, err error) {
	for i := from; i < min(from+limit, m.objects()) && err == nil; i++ {
		var r catalog.LiveRef
		r, err = m.ref(i)
		out = append(out, r)
	}
	return out, err
}

func (m *million) RefsByKey(_ context.Context, after *catalog.Ref, limit int) ([]catalog.LiveRef, error) {
	if after == nil {
		return m.refs(0, limit)
	}
	return m.refs(int(after.StreamID-1)*m.each+int(after.First), limit)
}

func (m *million) Streams(_ context.Context, after string, limit int) (out []catalog.Stream, err error) {
	from := slices.Index(m.streams, after) + 1
	for i := from; i < min(from+limit, len(m.streams)); i++ {
		out = append(out, m.stream(i))
	}
	return out, nil
}

func (m *million) stream(i int) catalog.Stream {
	return catalog.Stream{ID: int64(i + 1), Name: m.streams[i], Last: segment.Pos{Epoch: 1, Seq: segment.Seq(m.each)}}
}

func (m *million) Plan(_ context.Context, r catalog.PlanRequest) (catalog.Plan, error) {
	i, from := slices.Index(m.streams, r.Stream), int(max(r.From.Seq, 1))
	p := catalog.Plan{Stream: m.stream(i)}
	for ; from <= m.each && len(p.Refs) < r.Limit; from++ {
		p.Refs = append(p.Refs, m.linked(i*m.each+from-1))
	}
	p.More = from <= m.each
	return p, nil
}

func (m *million) Chains(context.Context) ([]catalog.ChainRow, error) {
	return []catalog.ChainRow{{Chain: oneChain, AbsorbedEnd: 1000, Rewritten: 1000, Condemned: 1000, Trimmed: 1000, NextSeq: segment.Seq(m.each) + 1}}, nil
}

func (m *million) Topologies(context.Context) ([]catalog.Topology, error) {
	return []catalog.Topology{{Epoch: 1, Shards: 1, Class: segment.ClassStandard, Settle: true, State: catalog.TopologyOpen}}, nil
}

func (m *million) Now(context.Context) (time.Time, error) { return oneTime, nil }

func (m *million) Settings(context.Context) (catalog.Settings, error)          { return catalog.Settings{}, nil }
func (m *million) Liveness(context.Context, string) ([]catalog.LiveRef, error) { return nil, nil }
func (m *million) Intent(context.Context, string) (catalog.Intent, error) {
	return catalog.Intent{}, catalog.ErrNotFound
}

func (m *million) Marker(context.Context, catalog.Duty, string) (catalog.Marker, error) {
	return catalog.Marker{}, catalog.ErrNotFound
}

// The bucket.

func (m *million) Name() string { return "scripted" }

func (m *million) Capabilities() objstore.Capabilities {
	return objstore.Capabilities{OrderedList: true, StartAfter: true, ListUploads: true, MaxDeleteSet: 1000}
}

func (m *million) ListUploads(context.Context, string) ([]objstore.Upload, error) { return nil, nil }

func (m *million) List(_ context.Context, _, _, token string, limit int) (objstore.Page, error) {
	from, _ := strconv.Atoi(token)
	var p objstore.Page
	for i := from; i < min(from+limit, m.objects()+m.leaked); i++ {
		p.Objects = append(p.Objects, objstore.Info{Key: m.key(i), Size: 200, Modified: oneTime})
	}
	if end := from + len(p.Objects); end < m.objects()+m.leaked {
		p.Next = strconv.Itoa(end)
	}
	return p, nil
}

func (m *million) Get(_ context.Context, key string, r objstore.Range, _ string) (io.ReadCloser, objstore.Info, error) {
	k, err := segment.ParseKey(key)
	if err != nil || k.Kind == segment.KeyHead {
		return nil, objstore.Info{}, &objstore.Error{Op: "get", Key: key, Kind: objstore.ErrNotFound}
	}
	body := []byte("a leaked pack")
	if k.Kind == segment.KeyStream {
		if body, _, err = object(k.Stream, k.First); err != nil {
			return nil, objstore.Info{}, err
		}
	}
	info := objstore.Info{Key: key, Size: int64(len(body)), ETag: "e"}
	off := r.Offset
	if off < 0 {
		off = max(0, info.Size+off)
	}
	end := info.Size
	if r.Length >= 0 {
		end = min(end, off+r.Length)
	}
	return io.NopCloser(bytes.NewReader(body[off:end])), info, nil
}

// TestManyObjects: memory does not grow with the bucket, and of the store it takes one LIST
// per 1,000 keys and one GET per object that refs name. Of 200,000 objects 100 B each would
// be seen.
func TestManyObjects(t *testing.T) { manyObjects(t, manyObjectsOfTest, 20<<20) }

// BenchmarkMillionObjects is the same of 10^6.
func BenchmarkMillionObjects(b *testing.B) {
	for b.Loop() {
		peak := manyObjects(b, 1_000_000, 64<<20)
		b.ReportMetric(float64(peak)/(1<<20), "peak-heap-MiB")
	}
}

func manyObjects(t testing.TB, objects int, most int64) (peak int64) {
	m := newMillion(objects)
	store, err := objstore.New(m, objstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	heap := func() int64 {
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	// What earlier tests left alive decides how much garbage may gather: little of it.
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	before := heap()
	begin := time.Now()
	r, err := check.Fsck(t.Context(), m, objstore.Classes{"standard": {store}}, check.Config{
		Concurrency: 16,
		Progress: func(objects, _ int64) {
			if objects%1000 == 0 {
				peak = max(peak, heap()-before)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := int64(m.objects()); r.Objects != n+int64(m.leaked) || r.Refs != n || r.Footers != n || r.DamageTotal != 0 || r.LeakedTotal != int64(m.leaked) || r.GarbageTotal != r.LeakedTotal {
		t.Fatalf("%+v %+v", r.Objects, r.Damage)
	}
	c := store.Counters()
	t.Logf("%d objects in %v: peak heap %.1f MiB above the start; %d LIST, %d GET", r.Objects, time.Since(begin).Round(time.Millisecond),
		float64(peak)/(1<<20), c.Requests[objstore.OpList], c.Requests[objstore.OpGet])
	if peak > most {
		t.Errorf("peak heap %d above the start, at most %d may be", peak, most)
	}
	m.bill(t, c)
	return peak
}

// bill is what a walk may cost.
func (m *million) bill(t testing.TB, c objstore.Counters) {
	t.Helper()
	n := int64(m.objects() + m.leaked)
	if lists := (n + 999) / 1000; c.Requests[objstore.OpList] > lists {
		t.Errorf("%d LISTs, %d are enough", c.Requests[objstore.OpList], lists)
	}
	// One for the chain's head, one for each object: its footer, or does it still stand?
	if c.Requests[objstore.OpGet] > n+1 {
		t.Errorf("%d GETs, %d are enough", c.Requests[objstore.OpGet], n+1)
	}
	if c.Total() != c.Requests[objstore.OpList]+c.Requests[objstore.OpGet]+c.Requests[objstore.OpListUploads] {
		t.Errorf("other requests: %v", c.Requests)
	}
}
