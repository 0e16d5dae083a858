package auditor_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/segment"
)

// TestStopIsNoAlarm: what a stop cuts short is not told as failed, wherever it comes.
func TestStopIsNoAlarm(t *testing.T) {
	x := newTier(t)
	for _, at := range []string{"call", "clock"} {
		for n, over := 1, false; !over; n++ {
			x.Slot(audittest.Write{Stream: "s", Rows: 20, Size: 400})
			ctx, cancel := context.WithCancel(t.Context())
			seen := map[string]int{}
			step := func(what string) {
				if seen[what]++; what == at && seen[what] == n {
					cancel()
				}
			}
			var log bytes.Buffer
			a := toldTo(x, &log, step)
			_, err := a.Once(ctx, auditor.OnceOptions{})
			if over = ctx.Err() == nil; over {
				x.Must(err)
			}
			cancel()
			if strings.Contains(log.String(), "failed") {
				t.Fatalf("stopped at %s %d:\n%s", at, n, log.String())
			}
			x.Clock.Advance(auditor.DefaultSweepEvery)
			x.RunDry()
		}
	}
	x.MustBeClean()
}

// toldTo is an auditor that logs to log, and says before it calls the store or looks at
// the clock.
func toldTo(x *audittest.Tier, log *bytes.Buffer, step func(what string)) *auditor.Auditor {
	x.T.Helper()
	store := x.Open(faultstore.Wrap(x.Mem, func(faultstore.Call) faultstore.Fault {
		step("call")
		return faultstore.Fault{}
	}))
	a, err := auditor.New(auditor.Deps{
		ID: "stopped", Catalog: x.DB, Classes: objstore.Classes{string(segment.ClassStandard): {store}}, Settler: x.Settler(store, x.DB),
		Logger: slog.New(slog.NewTextHandler(log, nil)), Wait: x.Clock.Wait,
		Clock: func() time.Time { step("clock"); return x.Clock.Now() },
	}, auditor.Config{Sweep: true, Concurrency: 1})
	x.Must(err)
	return a
}
