package auditor_test

import (
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// TestLifeOfATier: settle, trim-check, trim, teardown, reap, to a clean state.
func TestLifeOfATier(t *testing.T) {
	x := audittest.New(t, memstore.Options{})
	for range 3 {
		x.Slot(audittest.Write{Stream: "big", Rows: 40, Size: 400}, audittest.Write{Stream: "small", Rows: 3, Size: 40}, audittest.Write{Stream: "tiny", Rows: 1, Size: 8})
	}
	x.RunDry()
	x.MustBeClean()
	if slots := x.Slots(); len(slots) > 0 {
		t.Fatalf("slots stand after their settle and grace: %v", slots)
	}
	if settled := x.Settled(); len(settled) != 2 {
		t.Fatalf("settled objects %v, want a stream object and a pack", settled)
	}
	for _, s := range []string{"big", "small"} {
		_, err := x.DB.DeleteStream(t.Context(), s)
		x.Must(err)
	}
	x.RunDry()
	x.MustBeClean()
	if settled := x.Keys(segment.KeyStream); len(settled) != 0 {
		t.Fatalf("%v stand although their stream was deleted", settled)
	}
	if packs := x.Keys(segment.KeyPack); len(packs) != 1 {
		t.Fatalf("packs %v: a live stream's was not kept", packs)
	}
	if trims := x.Keys(segment.KeyTrim); len(trims) != 1 {
		t.Fatalf("trim records %v, want the two trims in one batch", trims)
	}
	_, err := x.DB.TrimStream(t.Context(), "tiny", segment.Pos{Epoch: 1, Seq: x.Next()})
	x.Must(err)
	x.RunDry()
	x.MustBeClean()
	if settled := x.Settled(); len(settled) != 0 {
		t.Fatalf("%v stand although nothing lives", settled)
	}
}

func TestOnceLingersForWhatIsDueSoon(t *testing.T) {
	x := audittest.New(t, memstore.Options{})
	x.Slot(audittest.Write{Stream: "s", Rows: 4, Size: 40})
	a := x.Auditor("a", auditor.Config{})
	sum, err := a.Once(t.Context(), auditor.OnceOptions{Linger: 3 * audittest.ReadGrace})
	x.Must(err)
	if slots := x.Slots(); len(slots) > 0 {
		t.Fatalf("slots %v stand after a lingering run: %+v", slots, sum.Duties)
	}
	trim := sum.Duties[string(catalog.DutyTrimCheck)]
	if trim.Outcomes["slots condemned"] != 1 || trim.Outcomes["slots deleted"] != 1 {
		t.Fatalf("trim-check %+v", trim)
	}
}

// TestOnceLeavesNoShareBehind: the budgets' share of an auditor that has ended is the
// others' at once, not after its lease.
func TestOnceLeavesNoShareBehind(t *testing.T) {
	x := audittest.New(t, memstore.Options{})
	if _, err := x.Auditor("a", auditor.Config{}).Once(t.Context(), auditor.OnceOptions{}); err != nil {
		t.Fatal(err)
	}
	x.Clock.Advance(time.Second)
	live, err := x.DB.RegisterAuditor(t.Context(), "b", time.Minute)
	x.Must(err)
	if live != 1 {
		t.Fatalf("%d auditors live", live)
	}
}
