package settle

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/catalog/sqlite"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// clock is a test's time: of the catalog, the store and the settler alike.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// tier is a bucket, a catalog and one chain's writer. Its cleanup checks I2, I3
// and that every row above live_from reads back.
type tier struct {
	t     testing.TB
	clock *clock
	mem   *memstore.Driver
	store *objstore.Store
	db    catalog.Catalog

	chain segment.Chain
	owner segment.UUID
	term  segment.Term
	next  segment.Seq
	id    segment.ID
	prev  segment.UUID
	rng   *rand.Rand
	rows  map[string][]segment.Row

	generation uint32 // of crafted packs

	// lax skips the reading of rows at cleanup, for tests that damage sources.
	lax bool
}

func newTier(t testing.TB) *tier {
	return newTierOn(t, memstore.Options{MinPart: 5 << 20, MinCopy: 5 << 20})
}

func newTierOn(t testing.TB, opt memstore.Options) *tier {
	t.Helper()
	return newTierWith(t, opt, func(clock func() time.Time) catalog.Catalog {
		db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "catalog.db"), Create: true, Clock: clock})
		must(t, err)
		return db
	})
}

// quickParts is smallParts with its catalog in memory: for the hundreds of tiers of a
// sweep.
func quickParts(t testing.TB) *tier {
	return newTierWith(t, memstore.Options{}, func(clock func() time.Time) catalog.Catalog {
		return memory.New(memory.Options{Clock: clock})
	})
}

func newTierWith(t testing.TB, opt memstore.Options, open func(clock func() time.Time) catalog.Catalog) *tier {
	t.Helper()
	x := &tier{
		t: t, clock: &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		chain: segment.Chain{Epoch: 1}, owner: uuid.New(), next: 1, id: 1,
		rng: rand.New(rand.NewPCG(1, 2)), rows: make(map[string][]segment.Row),
	}
	opt.Clock = x.clock.Now
	x.mem = memstore.New(opt)
	x.store = x.open(x.mem)
	db := open(x.clock.Now)
	x.db = db
	t.Cleanup(func() {
		x.check()
		must(t, db.Close())
	})
	_, err := db.Init(t.Context(), uuid.New())
	must(t, err)
	_, err = db.SeedReadGrace(t.Context(), 10*time.Minute)
	must(t, err)
	_, err = db.SeedOrphanGrace(t.Context(), time.Hour)
	must(t, err)
	_, err = db.EnsureTopology(t.Context(), catalog.Topology{Epoch: 1, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"mem"}, Settle: true, State: catalog.TopologyOpen})
	must(t, err)
	row, err := db.AcquireChain(t.Context(), catalog.Acquire{Chain: x.chain, Owner: x.owner, Address: "test", Lease: 100 * time.Hour})
	must(t, err)
	x.term = row.Term
	return x
}

// open puts a Store without pauses around a driver.
func (x *tier) open(d objstore.Driver) *objstore.Store {
	s, err := objstore.New(d, objstore.Config{Sleep: func(context.Context, time.Duration) error { return nil }})
	must(x.t, err)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write is one append call.
type write struct {
	stream string
	rows   int
	size   int  // of a payload
	noise  bool // does not compress
	text   bool // a line of code; size does not matter
}

// slot seals, publishes and absorbs a segment of these appends.
func (x *tier) slot(writes ...write) segment.ID {
	x.t.Helper()
	body := x.segment(writes)
	plan, err := segment.PlanBundle(bytes.NewReader(body), int64(len(body)))
	must(x.t, err)
	var obj bytes.Buffer
	f, err := plan.WriteTo(&obj, segment.BundleOptions{Object: uuid.New(), Created: x.clock.Now().UnixNano(), Writer: "test", Sealed: x.clock.Now().UnixNano()})
	must(x.t, err)
	key := segment.SlotKey(x.chain, x.id)
	_, err = x.store.PutOnce(x.t.Context(), key, obj.Bytes(), nil)
	must(x.t, err)
	_, err = x.db.AbsorbSlot(x.t.Context(), absorb.FromFooter(f, absorb.Bucket{Set: objstore.Set{x.store}, Class: segment.ClassStandard}, key, int64(obj.Len()), absorb.Caller{Owner: x.owner, Term: x.term}))
	must(x.t, err)
	x.id++
	x.prev = f.Slot.UUID
	return x.id - 1
}

// segment encodes a whole segment file.
func (x *tier) segment(writes []write) []byte {
	u := uuid.New()
	b := segment.AppendHeader(nil, u)
	frames := uint32(0)
	frame := func(kind segment.Kind, payload []byte, err error) {
		must(x.t, err)
		b, err = segment.AppendFrame(b, u, int64(len(b)), kind, 0, payload)
		must(x.t, err)
		frames++
	}
	p, err := segment.AppendStart(nil, &segment.Start{Chain: x.chain, ID: x.id, Base: x.next, Term: x.term, Prev: x.prev, Created: x.clock.Now().UnixNano()})
	frame(segment.KindStart, p, err)
	for _, w := range writes {
		rows := x.makeRows(w)
		batch := segment.Batch{Stream: w.stream, First: rows[0].Seq, Rows: rows}
		p, err := segment.AppendBatch(nil, &batch)
		frame(segment.KindBatch, p, err)
		if !x.lax {
			x.rows[w.stream] = append(x.rows[w.stream], batch.Rows...)
		}
	}
	seal := segment.AppendSeal(nil, segment.Seal{Frames: frames, Next: x.next, Digest: xxhash.Sum64(b)})
	frame(segment.KindSeal, seal, nil)
	return b
}

func (x *tier) makeRows(w write) []segment.Row {
	rows := make([]segment.Row, w.rows)
	for i := range rows {
		if w.text {
			rows[i] = segment.Row{Seq: x.next, Time: x.clock.Now().UnixNano() + int64(i), Payload: x.line()}
			x.next++
			continue
		}
		p := make([]byte, max(w.size, 8))
		for off := 0; off < len(p); off += 8 {
			v := x.rng.Uint64()
			if !w.noise {
				v = 0x6c206f7220776f72 + v%7
			}
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], v)
			copy(p[off:], word[:])
		}
		rows[i] = segment.Row{Seq: x.next, Time: x.clock.Now().UnixNano() + int64(i), Payload: p}
		x.next++
	}
	return rows
}

// deps of a settler over a store and a catalog.
func (x *tier) deps(store *objstore.Store, cat Catalog) Deps {
	return Deps{
		Catalog: cat, Classes: objstore.Classes{string(segment.ClassStandard): {store}}, Clock: x.clock.Now,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), NewNonce: uuid.NewString, NewUUID: uuid.New,
	}
}

// now is a configuration under which every standing slot is due.
func now() Config { return Config{SettleAge: -1, StreamObjectMin: 64 << 10} }

func (x *tier) settler(cfg Config) *Settler { return x.settlerOn(x.store, x.db, cfg) }

func (x *tier) settlerOn(store *objstore.Store, cat Catalog, cfg Config) *Settler {
	x.t.Helper()
	s, err := New(x.deps(store, cat), cfg)
	must(x.t, err)
	return s
}

// once runs one batch.
func (x *tier) once(s *Settler) Report {
	x.t.Helper()
	rep, err := s.RunOnce(x.t.Context(), x.chain, "settler-1")
	must(x.t, err)
	return rep
}

// settle runs batches until the chain is idle, putting postponed markers' time
// behind it; it fails the test if that does not end.
func (x *tier) settle(s *Settler) (all []Report) {
	x.t.Helper()
	for range 50 {
		rep := x.once(s)
		if rep.Idle == IdleEmpty {
			if x.markers() == 0 {
				return all
			}
			x.clock.advance(time.Hour)
			continue
		}
		all = append(all, rep)
	}
	x.t.Fatalf("the chain never got idle: %+v", all[len(all)-1])
	return nil
}

// markers is how many settle markers stand.
func (x *tier) markers() int {
	ms, err := x.db.MarkersOf(x.t.Context(), catalog.DutySettle, "", 1000)
	must(x.t, err)
	return len(ms)
}

// refs are all refs, by key.
func (x *tier) refs() (out []catalog.LiveRef) {
	var after *catalog.Ref
	for {
		page, err := x.db.RefsByKey(context.WithoutCancel(x.t.Context()), after, 500)
		must(x.t, err)
		if len(page) == 0 {
			return out
		}
		out = append(out, page...)
		after = &page[len(page)-1].Ref
	}
}

// kinds counts refs by kind.
func (x *tier) kinds() map[catalog.RefKind]int {
	out := make(map[catalog.RefKind]int)
	for _, r := range x.refs() {
		out[r.Kind]++
	}
	return out
}

func (x *tier) intents() (out []catalog.Intent) {
	out, err := x.db.Intents(context.WithoutCancel(x.t.Context()), "", 1000)
	must(x.t, err)
	return out
}

func (x *tier) objects(prefix string) (out []string) {
	for info, err := range x.store.List(context.WithoutCancel(x.t.Context()), prefix, "") {
		must(x.t, err)
		out = append(out, info.Key)
	}
	return out
}

// check holds I2, I3 and, unless lax, that every live row reads back.
func (x *tier) check() {
	x.t.Helper()
	if x.t.Failed() {
		return
	}
	ctx := context.WithoutCancel(x.t.Context())
	named := make(map[string]bool)
	footers := make(map[string]*segment.Footer)
	for _, r := range x.refs() {
		named[r.Key] = true
		if x.lax {
			continue
		}
		if footers[r.Key] == nil {
			f, _, err := readTail(ctx, x.store, r.Key)
			if err != nil {
				x.t.Errorf("I2: ref %s of %q names %s: %v", r.FirstPos(), r.Stream, r.Key, err)
				continue
			}
			footers[r.Key] = f
		}
	}
	intents := make(map[string]catalog.Intent)
	for _, in := range x.intents() {
		intents[in.Key] = in
	}
	reaps, err := x.db.MarkersOf(ctx, catalog.DutyReapCheck, "", 1000)
	must(x.t, err)
	for _, m := range reaps {
		named[m.ID] = true
	}
	row, err := x.db.Chain(ctx, x.chain)
	must(x.t, err)
	for _, key := range x.objects("") {
		k, err := segment.ParseKey(key)
		must(x.t, err)
		if _, watched := intents[key]; !named[key] && !watched && (k.Kind != segment.KeySlot || k.ID < row.Trimmed) {
			x.t.Errorf("I3: nothing watches %s", key)
		}
	}
	uploads, err := x.store.ListUploads(ctx, "")
	must(x.t, err)
	for _, u := range uploads {
		if !slices.Contains(intents[u.Key].Uploads, u.ID) {
			x.t.Errorf("I3: nothing watches upload %s of %s", u.ID, u.Key)
		}
	}
	if v := x.mem.Violations(); len(v) > 0 {
		x.t.Errorf("the referee: %v", v)
	}
	if !x.lax {
		x.fsck(ctx)
		x.checkRows(ctx, footers)
	}
}

// fsck looks from outside: no damage, and nothing that is owed to nobody.
func (x *tier) fsck(ctx context.Context) {
	x.t.Helper()
	rep, err := check.Fsck(ctx, x.db, objstore.Classes{string(segment.ClassStandard): {x.store}}, check.Config{})
	must(x.t, err)
	for _, d := range rep.Damage {
		x.t.Errorf("fsck: damage: %+v", d)
	}
	for _, r := range rep.Rotten {
		x.t.Errorf("fsck: rotten: %+v", r)
	}
	for _, g := range rep.Garbage {
		if g.State == check.Leaked {
			x.t.Errorf("fsck: leaked: %+v", g)
		}
	}
}

// checkRows reads every stream by its plan, straight from footers and chunks.
func (x *tier) checkRows(ctx context.Context, footers map[string]*segment.Footer) {
	for _, name := range sortedKeys(x.rows) {
		plan, err := x.db.Plan(ctx, catalog.PlanRequest{Stream: name, Limit: 100_000})
		if errors.Is(err, catalog.ErrNotFound) {
			continue // all of its rows were dead when its slots were absorbed
		}
		must(x.t, err)
		var got []segment.Row
		for i := range plan.Refs {
			r := &plan.Refs[i]
			if i > 0 && r.PrevLast != plan.Refs[i-1].LastPos() {
				x.t.Errorf("stream %q: hole before %s", name, r.FirstPos())
			}
			got = append(got, x.readRef(ctx, footers[r.Key], r, plan.LiveFrom)...)
		}
		var want []segment.Row
		for _, r := range x.rows[name] {
			if !(segment.Pos{Epoch: x.chain.Epoch, Seq: r.Seq}).Less(plan.LiveFrom) {
				want = append(want, r)
			}
		}
		if err := sameRowList(want, got); err != nil {
			x.t.Errorf("I1: stream %q: %v", name, err)
		}
	}
}

func sameRowList(want, got []segment.Row) error {
	if len(want) != len(got) {
		return fmt.Errorf("%d rows, %d wanted", len(got), len(want))
	}
	for i := range want {
		if want[i].Seq != got[i].Seq || want[i].Time != got[i].Time || !bytes.Equal(want[i].Payload, got[i].Payload) {
			return fmt.Errorf("row %d differs: seq %d, %d wanted", i, got[i].Seq, want[i].Seq)
		}
	}
	return nil
}

// readRef gives a ref's rows from liveFrom on, and holds the ref's sums and
// placement against its object.
func (x *tier) readRef(ctx context.Context, f *segment.Footer, r *catalog.Ref, liveFrom segment.Pos) (out []segment.Row) {
	var sum segment.Tally
	var at []segment.Chunk
	for _, c := range f.Chunks {
		if c.Stream != r.Stream || c.Epoch != r.Epoch || c.Last < r.First || c.First > r.Last {
			continue
		}
		at = append(at, c)
		stored, _, err := x.store.ReadRange(ctx, r.Key, c.Offset, c.Stored)
		must(x.t, err)
		raw, err := segment.DecodeChunk(&c, stored)
		must(x.t, err)
		for b, err := range segment.Frames(raw) {
			must(x.t, err)
			for i, row := range b.Rows {
				row.Seq = b.First + segment.Seq(i)
				if row.Seq < r.First || row.Seq > r.Last {
					continue
				}
				sum.AddRow(row)
				if !(segment.Pos{Epoch: r.Epoch, Seq: row.Seq}).Less(liveFrom) {
					out = append(out, row)
				}
			}
		}
	}
	if sum.First != r.First || sum.Last != r.Last || sum.Rows != r.Rows || sum.RowSum != r.RowSum {
		x.t.Errorf("I2: ref %s..%s of %q says %d rows, sum %x; %s has %d..%d, %d rows, sum %x",
			r.FirstPos(), r.LastPos(), r.Stream, r.Rows, r.RowSum, r.Key, sum.First, sum.Last, sum.Rows, sum.RowSum)
	}
	if len(at) == 0 || int(r.Chunks) != len(at) || r.Offset != at[0].Offset || r.Offset+r.Stored != at[len(at)-1].End() {
		x.t.Errorf("ref %s of %q: %d chunks in %d bytes at %d, the footer has %d", r.FirstPos(), r.Stream, r.Chunks, r.Stored, r.Offset, len(at))
	}
	if len(at) == 1 && (r.CRC != at[0].CRC || r.Sum != at[0].Sum || r.Codec != at[0].Codec || r.Raw != at[0].Raw) {
		x.t.Errorf("ref %s of %q does not describe its chunk", r.FirstPos(), r.Stream)
	}
	return out
}
