package settle

import (
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func standing(id segment.ID, sealed time.Time) catalog.StandingSlot {
	return catalog.StandingSlot{SlotRow: catalog.SlotRow{ID: id, First: segment.Seq(id) * 100, Next: segment.Seq(id)*100 + 100, Sealed: sealed}}
}

func slotRef(stream string, id int64, first, last, prev segment.Seq, bytes int64) catalog.Ref {
	r := catalog.Ref{Stream: stream, StreamID: id, First: first, Last: last, Chunks: 1, Bytes: bytes, Raw: bytes, Stored: bytes, Key: "seg", Kind: catalog.RefSlot, Revision: -1}
	if prev != 0 {
		r.PrevLast = segment.Pos{Seq: prev}
	}
	return r
}

func TestPlanIsDueByAgeOrBytes(t *testing.T) {
	now := time.Unix(10_000, 0)
	cfg := Config{}.withDefaults()
	for _, c := range []struct {
		name    string
		age     time.Duration
		transit int64
		idle    string
	}{
		{"young and small", cfg.SettleAge - 1, cfg.SettleBytes - 1, IdleYoung},
		{"of age", cfg.SettleAge, 1, ""},
		{"much transit", 0, cfg.SettleBytes, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := catalog.Window{Now: now, Slots: []catalog.StandingSlot{standing(1, now.Add(-c.age)), standing(2, now)}}
			w.Chain.TransitBytes = c.transit
			b, idle := plan(&w, cfg, catalog.Holder{})
			if idle != c.idle {
				t.Fatalf("idle %q, want %q", idle, c.idle)
			}
			if idle == "" && len(b.slots) != 2 {
				t.Fatalf("%d slots: the younger one must ride along", len(b.slots))
			}
		})
	}
	if _, idle := plan(&catalog.Window{Now: now}, cfg, catalog.Holder{}); idle != IdleEmpty {
		t.Fatalf("empty window: %q", idle)
	}
}

func TestPlanGivesLargeStreamsObjectsAndPacksTheRest(t *testing.T) {
	cfg := Config{SettleAge: -1, StreamObjectMin: 1000}.withDefaults()
	w := catalog.Window{Slots: []catalog.StandingSlot{standing(3, time.Time{}), standing(4, time.Time{})}, Refs: []catalog.Ref{
		slotRef("b-small", 2, 301, 310, 0, 999),
		slotRef("a-large", 1, 311, 320, 0, 600),
		slotRef("a-large", 1, 411, 420, 320, 400),
		slotRef("c-small", 3, 421, 430, 0, 1),
	}}
	b, idle := plan(&w, cfg, catalog.Holder{})
	if idle != "" || len(b.jobs) != 2 {
		t.Fatalf("idle %q, %d jobs", idle, len(b.jobs))
	}
	pack, obj := b.jobs[0], b.jobs[1]
	if pack.kind != segment.ObjPack || len(pack.members) != 2 || pack.members[0].stream != "b-small" {
		t.Errorf("pack %v with %d members", pack.kind, len(pack.members))
	}
	if got, want := pack.key(0), segment.PackKey(segment.Chain{}, 3, 4, 0); got != want {
		t.Errorf("pack key %s, want %s", got, want)
	}
	if obj.kind != segment.ObjStream || len(obj.members[0].runs) != 1 || len(obj.members[0].runs[0].refs) != 2 {
		t.Errorf("stream object: %+v", obj.members[0])
	}
	if got, want := obj.key(2), segment.StreamKey("a-large", 0, 311, 2); got != want {
		t.Errorf("stream key %s, want %s", got, want)
	}
}

func TestRunsNeverSpanAGap(t *testing.T) {
	refs := []catalog.Ref{
		slotRef("s", 1, 10, 19, 0, 1), slotRef("s", 1, 20, 29, 19, 1),
		slotRef("s", 1, 40, 49, 35, 1), // rows up to 35 are elsewhere
		slotRef("s", 1, 50, 59, 49, 1),
	}
	lost := slotRef("s", 1, 60, 69, 59, 1)
	lost.Kind = catalog.RefLost
	refs = append(refs, lost, slotRef("s", 1, 70, 79, 69, 1))
	runs := runsOf(refs, segment.Pos{Seq: 20})
	var got []string
	for _, r := range runs {
		got = append(got, r.refs[0].FirstPos().String()+"+"+strings.Repeat(".", len(r.refs)))
	}
	if want := "0.20+. 0.40+.. 0.70+."; strings.Join(got, " ") != want {
		t.Fatalf("runs %v, want %s", got, want)
	}
}

func TestPlanLeavesVoidSlotsWithRowsAlone(t *testing.T) {
	void := func(id segment.ID, rows bool) catalog.StandingSlot {
		s := standing(id, time.Time{})
		s.Void = true
		if !rows {
			s.Next = s.First
		}
		return s
	}
	w := catalog.Window{Slots: []catalog.StandingSlot{void(1, true), void(2, false), standing(3, time.Time{}), void(4, true), standing(5, time.Time{})}}
	b, _ := plan(&w, Config{SettleAge: -1}.withDefaults(), catalog.Holder{})
	if len(b.slots) != 2 || b.slots[0].ID != 2 || b.slots[1].ID != 3 {
		t.Fatalf("slots %+v", b.slots)
	}
}

func TestConfigValidate(t *testing.T) {
	if err := (Config{}).Validate(); err != nil {
		t.Fatalf("defaults: %v", err)
	}
	for _, c := range []Config{
		{StreamObjectMin: segment.ChunkRawMax + 1},
		{BatchMax: -1},
		{Lease: time.Millisecond},
		{Backoff: time.Hour, BackoffMax: time.Minute},
		{FetchBytes: -1},
		{WorkBytes: -1},
		{Workers: -1},
		{Outputs: -1},
		{Fetches: -1},
		{Writer: strings.Repeat("v", segment.MaxWriterVersion+1)},
	} {
		if c.Validate() == nil {
			t.Errorf("accepted %+v", c)
		}
	}
	if _, err := New(Deps{}, Config{}); err == nil {
		t.Error("nil dependencies accepted")
	}
}

func TestCoalesceSpendsBytesBeforeRequests(t *testing.T) {
	got := coalesce([]span{{100, 50}, {0, 50}, {150 + gapMax, 10}, {200 + 2*gapMax, 5}, {windowBytes * 2, windowBytes * 2}, {windowBytes * 4, 1}})
	want := []span{{0, 160 + gapMax}, {200 + 2*gapMax, 5}, {windowBytes * 2, windowBytes * 2}, {windowBytes * 4, 1}}
	if len(got) != len(want) {
		t.Fatalf("%d ranges, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].span != want[i] {
			t.Errorf("range %d: %+v, want %+v", i, got[i].span, want[i])
		}
	}
}
