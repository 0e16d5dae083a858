package orphan_test

import (
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/orphan"
)

// TestK9SlowUploadIsJudgedByItsLastSignOfLife: an upload that was begun many orphan graces
// ago is no garbage while its intent's holder comes back. It is when nobody did for a grace.
func TestK9SlowUploadIsJudgedByItsLastSignOfLife(t *testing.T) {
	x := newTier(t)
	in := job(x, key, 30*time.Minute)
	id, err := x.Mem.CreateUpload(t.Context(), key, nil)
	x.Must(err)
	x.Must(x.DB.AddUpload(t.Context(), key, in.Nonce, id))
	stands := func() bool {
		ups, err := x.Store.ListUploads(t.Context(), "")
		x.Must(err)
		return len(ups) == 1
	}
	signs := 0
	for range 6 {
		for range 5 { // 50 minutes, looked at all along
			x.Clock.Advance(10 * time.Minute)
			for _, m := range x.Markers(catalog.DutyOrphan) { // whoever comes early
				_, err := judge(x).RunOnce(t.Context(), m)
				x.Must(err)
			}
			_, err := sweeper(x, true).RunOnce(t.Context())
			x.Must(err)
			if !stands() {
				t.Fatalf("aborted after %d takeovers, the last sign of life being younger than a grace", signs)
			}
		}
		job(x, key, 30*time.Minute) // takes the intent over, as a re-run does
		signs++
	}
	x.Clock.Advance(audittest.OrphanGrace)
	rep, err := one(x, judge(x))
	x.Must(err)
	if rep.Outcome != orphan.Judged || stands() {
		t.Fatalf("%+v: a dead job's upload stands", rep)
	}
	x.RunDry()
	x.MustBeClean()
}
