package reap_test

import (
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore/memstore"
)

// K5: nothing of what a watermark gives up is retired or deleted before the watermark
// was committed, by the log of all verbs and store calls; one that was not committed
// deletes nothing.
func TestK5DeletesComeAfterTheWatermark(t *testing.T) {
	for _, form := range []audittest.Form{audittest.Fine, audittest.NotApplied, audittest.AnswerLost} {
		for name, open := range map[string]func(*testing.T) *audittest.Tier{
			"settled": func(t *testing.T) *audittest.Tier { return packed(t, 3) },
			"plain": func(t *testing.T) *audittest.Tier {
				x := audittest.NewPlain(t, memstore.Options{})
				for range 3 {
					x.Slot(audittest.Write{Stream: "big", Rows: 20, Size: 400})
				}
				return x
			},
		} {
			t.Run(name+"/"+string(form), func(t *testing.T) { deletesAfterWatermark(t, open(t), form) })
		}
	}
}

func deletesAfterWatermark(t *testing.T, x *audittest.Tier, form audittest.Form) {
	objects := func() int { return len(x.Slots()) + len(x.Settled()) }
	before := objects()
	f := &audittest.Faults{Pick: func(_ int, call string) audittest.Form {
		if call == "RaiseWatermark" {
			return form
		}
		return audittest.Fine
	}}
	f.Start()
	cat, store := f.Catalog(x), f.Store(x)
	work := func() {
		for range 8 {
			_, err := x.AuditorOn("k5", auditor.Config{}, store, cat).Once(x.Ctx(), auditor.OnceOptions{})
			x.Must(err)
			x.Clock.Advance(audittest.ReadGrace + time.Second)
		}
	}
	work()
	if objects() != before {
		t.Fatalf("%d objects, %d stood before any watermark", objects(), before)
	}
	_, err := cat.RaiseWatermark(x.Ctx(), x.Boundary(2))
	if (err != nil) != (form != audittest.Fine) {
		t.Fatalf("raise: %v", err)
	}
	work()
	calls := f.Calls()
	raised := callIndex(calls, "RaiseWatermark")
	for i, c := range calls {
		if (c == "RetireRefs" || strings.HasPrefix(c, "store delete")) && i < raised {
			t.Errorf("call %d, %s, before the watermark was committed by call %d", i, c, raised)
		}
	}
	retired, deleted := callIndex(calls, "RetireRefs"), callIndex(calls, "store delete")
	if form == audittest.NotApplied {
		if retired >= 0 || deleted >= 0 || objects() != before {
			t.Errorf("retired at %d, deleted at %d, %d objects: nothing was committed", retired, deleted, objects())
		}
		return
	}
	if retired < raised || deleted < retired || objects() >= before {
		t.Errorf("raised at %d, retired at %d, deleted at %d, %d objects of %d", raised, retired, deleted, objects(), before)
	}
	f.Heal()
	x.RunDry()
	x.MustBeClean()
}
