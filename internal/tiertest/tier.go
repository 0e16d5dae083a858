package tiertest

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// Clock is a test's time: of the catalog, the store and the reader alike.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now is the present.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the present.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Tier is a bucket, a catalog and one chain.
type Tier struct {
	T       testing.TB
	Clock   *Clock
	Mem     *memstore.Driver
	Store   *objstore.Store
	Catalog catalog.Catalog
	Classes objstore.Classes
	Chain   segment.Chain
	Owner   segment.UUID
	Term    segment.Term
	// Rows that were written, by stream.
	Rows map[string][]segment.Row

	next segment.Seq
	id   segment.ID
	prev segment.UUID
}

// ReadGrace and OrphanGrace of every Tier.
const (
	ReadGrace   = 10 * time.Minute
	OrphanGrace = time.Hour
)

// New makes an empty tier; wrap may put a fault layer around the driver (nil: none).
func New(t testing.TB, wrap func(objstore.Driver) objstore.Driver) *Tier {
	t.Helper()
	return NewOn(t, memstore.Options{}, wrap)
}

// NewOn is New on a bucket with options; its clock is the tier's.
func NewOn(t testing.TB, opts memstore.Options, wrap func(objstore.Driver) objstore.Driver) *Tier {
	t.Helper()
	x := &Tier{
		T: t, Clock: &Clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		Chain: segment.Chain{Epoch: 1}, Owner: uuid.New(), next: 1, id: 1, Rows: map[string][]segment.Row{},
	}
	opts.Clock = x.Clock.Now
	x.Mem = memstore.New(opts)
	var driver objstore.Driver = x.Mem
	if wrap != nil {
		driver = wrap(driver)
	}
	store, err := objstore.New(driver, objstore.Config{Sleep: func(context.Context, time.Duration) error { return nil }})
	x.must(err)
	x.Store = store
	x.Classes = objstore.Classes{string(segment.ClassStandard): {store}}
	x.Catalog = memory.New(memory.Options{Clock: x.Clock.Now})
	t.Cleanup(func() { x.must(x.Catalog.Close()) })
	x.found()
	return x
}

// found is the deployment's first start.
func (x *Tier) found() {
	ctx := x.T.Context()
	_, err := x.Catalog.Init(ctx, uuid.New())
	x.must(err)
	_, err = x.Catalog.SeedReadGrace(ctx, ReadGrace)
	x.must(err)
	_, err = x.Catalog.SeedOrphanGrace(ctx, OrphanGrace)
	x.must(err)
	_, err = x.Catalog.EnsureTopology(ctx, catalog.Topology{
		Epoch: 1, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: catalog.TopologyOpen,
	})
	x.must(err)
	row, err := x.Catalog.AcquireChain(ctx, catalog.Acquire{Chain: x.Chain, Owner: x.Owner, Address: "test", Lease: 1000 * time.Hour})
	x.must(err)
	x.Term = row.Term
}

func (x *Tier) must(err error) {
	x.T.Helper()
	if err != nil {
		x.T.Fatal(err)
	}
}

// Write is one append call: rows of a stream, each with a payload of size bytes.
type Write struct {
	Stream string
	Rows   int
	Size   int
}

// Slot seals, publishes and absorbs a segment of these appends and returns its key.
func (x *Tier) Slot(writes ...Write) string {
	x.T.Helper()
	return x.publish(writes, segment.BundleOptions{})
}

func (x *Tier) publish(writes []Write, opt segment.BundleOptions) string {
	x.T.Helper()
	body := x.segment(writes)
	plan, err := segment.PlanBundle(bytes.NewReader(body), int64(len(body)))
	x.must(err)
	var obj bytes.Buffer
	now := x.Clock.Now().UnixNano()
	opt.Object, opt.Created, opt.Writer, opt.Sealed = uuid.New(), now, "test", now
	f, err := plan.WriteTo(&obj, opt)
	x.must(err)
	key := segment.SlotKey(x.Chain, x.id)
	_, err = x.Store.PutOnce(x.T.Context(), key, obj.Bytes(), nil)
	x.must(err)
	bucket := absorb.Bucket{Set: objstore.Set{x.Store}, Class: segment.ClassStandard}
	_, err = x.Catalog.AbsorbSlot(x.T.Context(), absorb.FromFooter(f, bucket, key, int64(obj.Len()), absorb.Caller{Owner: x.Owner, Term: x.Term}))
	x.must(err)
	x.id++
	x.prev = f.Slot.UUID
	return key
}

// segment encodes a whole segment file.
func (x *Tier) segment(writes []Write) []byte {
	u := uuid.New()
	b := segment.AppendHeader(nil, u)
	frames := uint32(0)
	add := func(kind segment.Kind, payload []byte, err error) {
		x.must(err)
		b, err = segment.AppendFrame(b, u, int64(len(b)), kind, 0, payload)
		x.must(err)
		frames++
	}
	start, err := segment.AppendStart(nil, &segment.Start{
		Chain: x.Chain, ID: x.id, Base: x.next, Term: x.Term, Prev: x.prev, Created: x.Clock.Now().UnixNano(),
	})
	add(segment.KindStart, start, err)
	for _, w := range writes {
		rows := x.rows(w)
		batch, err := segment.AppendBatch(nil, &segment.Batch{Stream: w.Stream, First: rows[0].Seq, Rows: rows})
		add(segment.KindBatch, batch, err)
		x.Rows[w.Stream] = append(x.Rows[w.Stream], rows...)
	}
	add(segment.KindSeal, segment.AppendSeal(nil, segment.Seal{Frames: frames, Next: x.next, Digest: xxhash.Sum64(b)}), nil)
	return b
}

// rows makes payloads that differ and compress a little.
func (x *Tier) rows(w Write) []segment.Row {
	rows := make([]segment.Row, w.Rows)
	for i := range rows {
		p := fmt.Appendf(nil, "%s/%d ", w.Stream, x.next)
		h := xxhash.Sum64(p)
		for len(p) < w.Size {
			h = h*6364136223846793005 + 1442695040888963407
			p = strconv.AppendUint(p, h, 16)
		}
		rows[i] = segment.Row{Seq: x.next, Time: x.Clock.Now().UnixNano() + int64(i), Payload: p[:max(w.Size, 1)]}
		x.next++
	}
	return rows
}
