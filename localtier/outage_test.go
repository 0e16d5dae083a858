package localtier

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
)

// TestOutageBuildsNoSlots: while the bucket is silent a slot is not built anew for each try,
// which reads, checks and compresses its segment; once it answers, be it to refuse the
// question, the slot is built and sent.
func TestOutageBuildsNoSlots(t *testing.T) {
	for name, refuses := range map[string]faultstore.Fault{"answers": {}, "refuses to say": {Kind: faultstore.NotApplied, Err: objstore.ErrDenied}} {
		t.Run(name, func(t *testing.T) {
			const tries = 20
			var away atomic.Bool
			var tried, built, heads atomic.Int64
			w := newWorldOn(t, 1, func(d objstore.Driver) objstore.Driver {
				return faultstore.Wrap(d, func(c faultstore.Call) faultstore.Fault {
					switch {
					case away.Load():
						return faultstore.Fault{Kind: faultstore.NotApplied}
					case c.Op == objstore.OpHead:
						heads.Add(1)
						return refuses
					}
					return faultstore.Fault{}
				})
			})
			wr := w.open("a", func(o *Options) {
				o.Cut = func(s Step) error {
					if s == StepBuilt {
						built.Add(1)
					}
					return nil
				}
				o.Config.Jitter = func(time.Duration) time.Duration { // a try was in vain
					if tried.Add(1) == tries {
						away.Store(false)
					}
					return time.Nanosecond
				}
			})
			away.Store(true)
			heads.Store(0)
			w.mustAppend(wr, "s", AckShared, "row") // acknowledged once it is absorbed
			if tried.Load() < tries || built.Load() != 2 || heads.Load() == 0 {
				t.Errorf("%d tries in vain built %d slots, %d questions were answered: want 2, the first and the last, of %d tries", tried.Load(), built.Load(), heads.Load(), tries)
			}
			w.mustClose(wr)
			w.checkStored()
		})
	}
}
