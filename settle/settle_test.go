package settle

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// fill publishes slots of many streams: some large, most small.
func (x *tier) fill(slots int) {
	for s := range slots {
		var ws []write
		for i := range 40 {
			ws = append(ws, write{stream: fmt.Sprintf("small-%02d", i), rows: 1 + i%7, size: 100})
		}
		for i := range 3 {
			ws = append(ws, write{stream: fmt.Sprintf("large-%d", i), rows: 50, size: 2000}, write{stream: fmt.Sprintf("large-%d", i), rows: 3, size: 900})
		}
		if s == 1 {
			ws = append(ws, write{stream: segment.AuditStream(0), rows: 2, size: 50})
		}
		x.clock.advance(time.Second)
		x.slot(ws...)
	}
}

func TestSettleMovesManyStreamsIntoObjectsAndOnePack(t *testing.T) {
	x := newTier(t)
	x.fill(4)
	before := x.store.Counters()
	rep := x.once(x.settler(now()))
	if rep.Idle != "" || rep.Slots != 4 || rep.Resolved != 4 || rep.Outputs != 4 || len(rep.Failures) != 0 {
		t.Fatalf("report %+v", rep)
	}
	if k := x.kinds(); k[catalog.RefSlot] != 0 || k[catalog.RefStream] != 3 || k[catalog.RefPack] != 41 {
		t.Errorf("refs %v", k)
	}
	if n := x.markers(); n != 0 {
		t.Errorf("%d settle markers stand", n)
	}
	if in := x.intents(); len(in) != 0 {
		t.Errorf("intents stand: %+v", in)
	}
	c := x.store.Counters().Sub(before)
	if c.Requests[objstore.OpGet] != 4 || c.PutLike() != 4 || c.Total() != 8 {
		t.Errorf("a GET a slot and a PUT an output: %v", c.Requests)
	}
	if rep.Rows == 0 || rep.RawBytes == 0 || rep.Requests.Requests[objstore.OpGet] != 4 || rep.Through != rep.StoredBytes {
		t.Errorf("report %+v", rep)
	}
	if rep := x.once(x.settler(now())); rep.Idle != IdleEmpty {
		t.Errorf("second pass: %+v", rep)
	}
	// The chain's trim-check was armed with the resolve: its slots are watched.
	if ms, err := x.db.MarkersOf(t.Context(), catalog.DutyTrimCheck, "", 10); err != nil || len(ms) != 1 {
		t.Errorf("trim-check markers: %v, %v", ms, err)
	}
}

func TestSettleWaitsForAge(t *testing.T) {
	x := newTier(t)
	x.fill(2)
	s := x.settler(Config{SettleAge: time.Minute})
	if rep := x.once(s); rep.Idle != IdleYoung {
		t.Fatalf("report %+v", rep)
	}
	x.clock.advance(time.Minute)
	if rep := x.once(s); rep.Slots != 2 || rep.Resolved != 2 {
		t.Fatalf("report %+v", rep)
	}
}

func TestBatchesAreBounded(t *testing.T) {
	x := newTier(t)
	x.fill(4)
	cfg := now()
	cfg.BatchMax = 1 // one slot at least
	reps := x.settle(x.settler(cfg))
	if len(reps) != 4 {
		t.Fatalf("%d batches", len(reps))
	}
}

func TestFetchedBytesBeyondMemoryAreSpooled(t *testing.T) {
	x := newTier(t)
	x.fill(3)
	cfg := now()
	cfg.FetchBytes, cfg.WorkBytes, cfg.SpoolDir = 1, 1, t.TempDir()
	rep := x.once(x.settler(cfg))
	if rep.Resolved != 3 || rep.Requests.Requests[objstore.OpGet] != 3 {
		t.Fatalf("report %+v", rep)
	}
	cfg.SpoolDir = "/nonexistent/strandline"
	x.fill(1)
	rep = x.once(x.settler(cfg))
	if len(rep.Failures) == 0 || rep.Resolved != 0 {
		t.Fatalf("without a spool: %+v", rep)
	}
	x.clock.advance(time.Hour)
	x.settle(x.settler(now()))
}

// bigStream publishes a slot whose one stream takes more than one chunk, each long
// enough to be copied by the store.
func (x *tier) bigStream() {
	var ws []write
	for range 14 {
		ws = append(ws, write{stream: "big", rows: 16, size: 64 << 10, noise: true})
	}
	ws = append(ws, write{stream: "tiny", rows: 3, size: 10})
	x.slot(ws...)
}

func TestLongChunksAreCopiedByTheStore(t *testing.T) {
	x := newTier(t)
	x.bigStream()
	x.slot(write{stream: "big", rows: 10, size: 1000}, write{stream: "big", rows: 10, size: 1000})
	before := x.store.Counters()
	rep := x.once(x.settler(Config{SettleAge: -1}))
	if rep.Resolved != 2 || rep.ServerSide < 8<<20 || rep.Through > 7<<20 {
		t.Fatalf("report %+v", rep)
	}
	c := x.store.Counters().Sub(before)
	if c.Requests[objstore.OpCopyPart] == 0 || c.BytesIn > 7<<20 {
		t.Errorf("requests %v, %d bytes in", c.Requests, c.BytesIn)
	}
	// I9: PUT-like at most 2 + batches x (1 + stream objects) + parts, GETs at most
	// slots + footers + parts.
	parts := c.Requests[objstore.OpCopyPart] + c.Requests[objstore.OpUploadPart]
	if c.PutLike() > 2+1+1+parts || c.Requests[objstore.OpGet] > 2+parts || c.Requests[objstore.OpHead] > 1 {
		t.Errorf("requests %v", c.Requests)
	}
	if in := x.intents(); len(in) != 0 {
		t.Errorf("intents stand after all uploads ended: %+v", in)
	}
}

func TestLongChunksPassThroughWhereTheStoreCopiesNoRanges(t *testing.T) {
	x := newTierOn(t, memstore.Options{MinPart: 5 << 20, EqualParts: true})
	x.bigStream()
	rep := x.once(x.settler(Config{SettleAge: -1}))
	if rep.Resolved != 1 || rep.ServerSide != 0 {
		t.Fatalf("report %+v", rep)
	}
}

func TestNothingBelowLiveFromIsCopied(t *testing.T) {
	x := newTier(t)
	x.slot(write{stream: "s", rows: 100, size: 2000}, write{stream: "dead", rows: 10, size: 100})
	x.slot(write{stream: "s", rows: 100, size: 2000})
	cut := segment.Pos{Epoch: 1, Seq: 50}
	_, err := x.db.TrimStream(t.Context(), "s", cut)
	must(t, err)
	_, err = x.db.DeleteStream(t.Context(), "dead")
	must(t, err)
	rep := x.once(x.settler(now()))
	if len(rep.Failures) != 0 || rep.Outputs != 1 || rep.Rows != 151 {
		t.Fatalf("report %+v", rep)
	}
	for _, r := range x.refs() {
		if r.Stream != "s" {
			continue
		}
		f, _, err := readTail(t.Context(), x.store, r.Key)
		must(t, err)
		if f.Chunks[0].First != cut.Seq || r.First != cut.Seq {
			t.Errorf("the object begins at seq %d, its ref at %d, live_from is %s", f.Chunks[0].First, r.First, cut)
		}
		// A follower that was given row 40 asks the ref whether it missed any.
		if want := (segment.Pos{Epoch: 1, Seq: cut.Seq - 1}); r.PrevLast != want {
			t.Errorf("the row before the ref is %s, the ref says %s", want, r.PrevLast)
		}
	}
	// The dead stream's ref still names slot 1: it waits for the walk, and no pass spins.
	if rep := x.once(x.settler(now())); rep.Idle != "" || rep.Resolved != 0 || x.markers() != 1 {
		t.Fatalf("before the walk: %+v", rep)
	}
	if rep := x.once(x.settler(now())); rep.Idle != IdleEmpty {
		t.Fatalf("before the walk, again: %+v", rep)
	}
	x.walk("dead")
	x.walk("s")
	if rep := x.once(x.settler(now())); rep.Resolved != 1 || x.markers() != 0 {
		t.Fatalf("after the walk: %+v", rep)
	}
}

// walk is a teardown's: it arms the watchers of dead refs, then retires them.
func (x *tier) walk(stream string) {
	x.t.Helper()
	s, err := x.db.Stream(x.t.Context(), stream)
	must(x.t, err)
	for {
		page, err := x.db.WalkStream(x.t.Context(), s.ID, 100)
		must(x.t, err)
		watch := page.Dead
		if page.Straddle != nil {
			watch = append(watch[:len(watch):len(watch)], *page.Straddle)
		}
		must(x.t, x.db.ArmWatchers(x.t.Context(), watch))
		if len(page.Dead) > 0 {
			_, err = x.db.RetireRefs(x.t.Context(), page.Dead)
			must(x.t, err)
		}
		if !page.More {
			return
		}
	}
}

func TestFailingMemberIsLeftOutAndOthersCommit(t *testing.T) {
	x := newTier(t)
	x.fill(2)
	x.lax = true
	x.damage(segment.SlotKey(x.chain, 1), "small-07")
	s := x.settler(now())
	rep := x.once(s)
	if len(rep.Failures) != 1 || rep.Failures[0].Stream != "small-07" || rep.Resolved != 0 || rep.Outputs != 4 {
		t.Fatalf("report %+v", rep)
	}
	if !segment.IsStructural(rep.Failures[0].Err) {
		t.Errorf("cause: %v", rep.Failures[0].Err)
	}
	if k := x.kinds(); k[catalog.RefSlot] != 2 {
		t.Errorf("refs %v", k)
	}
	// Both of its slots are put off; what comes later settles meanwhile.
	if rep := x.once(s); rep.Idle != IdleEmpty {
		t.Fatalf("put off, yet %+v", rep)
	}
	x.fill(1)
	if rep := x.once(s); rep.Resolved != 1 || len(rep.Failures) != 0 {
		t.Fatalf("later slot: %+v", rep)
	}
	ms, err := x.db.MarkersOf(t.Context(), catalog.DutySettle, "", 10)
	must(t, err)
	if len(ms) != 2 || ms[0].Attempts != 1 || ms[0].LastError == "" {
		t.Errorf("markers %+v", ms)
	}
	rows, err := x.db.AuditRows(t.Context(), 0, 100)
	must(t, err)
	if len(rows) == 0 || rows[len(rows)-1].Kind != "corruption" {
		t.Errorf("audit rows %+v", rows)
	}
	// Its pack's key is named by a ref now: the retry takes the next revision.
	x.clock.advance(time.Hour)
	if rep := x.once(s); len(rep.Failures) != 1 {
		t.Fatalf("retry: %+v", rep)
	}
}

// damage flips a byte of a stream's chunk in an object, behind the referee's back.
func (x *tier) damage(key, stream string) {
	x.t.Helper()
	f, info, err := readTail(x.t.Context(), x.store, key)
	must(x.t, err)
	body, _, err := x.store.ReadRange(x.t.Context(), key, 0, info.Size)
	must(x.t, err)
	for _, c := range f.Chunks {
		if c.Stream == stream {
			body[c.Offset+c.Stored/2] ^= 1
		}
	}
	x.replace(key, body)
}

// replace makes a bucket of all objects anew, with one body changed: the referee
// allows no overwrite.
func (x *tier) replace(key string, body []byte) {
	x.t.Helper()
	mem := memstore.New(memstore.Options{Clock: x.clock.Now})
	store := x.open(mem)
	for _, k := range x.objects("") {
		b := body
		if k != key {
			var err error
			b, _, err = x.store.ReadAll(x.t.Context(), k, 1<<30)
			must(x.t, err)
		}
		_, err := store.PutOnce(x.t.Context(), k, b, nil)
		must(x.t, err)
	}
	x.mem, x.store = mem, store
}

// craft puts an object of one stream's rows at a key, as another job would have.
func (x *tier) craft(key string, kind segment.ObjectKind, stream string, chunks ...[]segment.Row) {
	x.t.Helper()
	var b bytes.Buffer
	o := segment.NewObjectWriter(&b, &segment.Footer{Kind: kind, Object: uuid.New(), Created: 1, Writer: "other"})
	for _, rows := range chunks {
		p, err := segment.AppendBatch(nil, &segment.Batch{Stream: stream, First: rows[0].Seq, Rows: rows})
		must(x.t, err)
		raw, err := segment.AppendFrame(nil, uuid.Nil, 0, segment.KindBatch, 0, p)
		must(x.t, err)
		tally, err := segment.TallyFrames(raw)
		must(x.t, err)
		meta := segment.Chunk{Stream: stream, Epoch: 1, Generation: x.generation}
		meta.SetTally(tally)
		must(x.t, o.AddChunk(meta, raw))
	}
	_, err := o.Finish()
	must(x.t, err)
	_, err = x.store.PutOnce(x.t.Context(), key, b.Bytes(), nil)
	must(x.t, err)
}
