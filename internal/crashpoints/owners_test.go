package crashpoints_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Crash points of 03 that concern a chain's owner.

var errCut = errors.New("cut")

// Restart on one's own disk with unpublished segments: the same directory, so no fence and
// no quarantine. The term rises, every acknowledged row keeps its seq, and all is published.
func TestRestartOnOnesOwnDiskWithUnpublishedSegments(t *testing.T) {
	for seed := range uint64(4) {
		onSite(t, func(t *testing.T, s *site) {
			disk := powercut.New()
			never := func(o *localtier.Options) {
				o.Cut = func(step localtier.Step) error {
					if step == localtier.StepBuilt {
						return errCut
					}
					return nil
				}
			}
			a := s.mustOpen(disk, nil, never)
			for i := range 3 {
				s.must(s.append(a, localtier.AckLocal, fmt.Sprint(i)))
				time.Sleep(11 * time.Second) // a segment is sealed by age
			}
			disk = s.powerCut(a, disk, seed)

			if len(s.slots()) != 0 {
				t.Fatalf("slots %v: nothing was to be published", s.slots())
			}
			again := s.mustOpen(disk, nil)
			if st := again.Status()[0]; st.Term != 2 || st.NextSeq != 4 {
				t.Errorf("%+v: want the chain resumed in term 2, at seq 4", st)
			}
			s.must(s.append(again, localtier.AckShared, "after"))
			s.must(again.Close(t.Context()))
			s.converges()
		})
	}
}

// A slot PUT whose answer is lost: the slot stands. Whoever asks, the same process or the
// next one on that directory, finds its own UUID, digest and length there, and goes on.
func TestASlotPutWhoseAnswerIsLost(t *testing.T) {
	for _, form := range []audittest.Form{audittest.AnswerLost, audittest.CrashAfter} {
		t.Run(string(form), func(t *testing.T) {
			onSite(t, func(t *testing.T, s *site) {
				puts := 0
				f := &audittest.Faults{Pick: func(_ int, call string) audittest.Form {
					if strings.HasPrefix(call, "store put seg/") {
						if puts++; puts == 1 {
							return form
						}
					}
					return audittest.Fine
				}}
				f.Start()
				disk := powercut.New()
				a := s.mustOpen(disk, f)
				s.must(s.append(a, localtier.AckLocal, "one"))
				time.Sleep(time.Minute)
				if f.Hit() == "" || len(s.slots()) != 1 {
					t.Fatalf("hit %q, slots %v: want the slot standing, its answer lost", f.Hit(), s.slots())
				}
				if form == audittest.CrashAfter {
					if end := s.chain().AbsorbedEnd; end != 1 {
						t.Fatalf("absorbed_end %d of a process that was cut before", end)
					}
					disk = s.powerCut(a, disk, 1)
					f.Heal()
					a = s.mustOpen(disk, nil)
				}
				s.must(s.append(a, localtier.AckShared, "two"))
				s.must(a.Close(t.Context()))
				s.converges()
			})
		})
	}
}

// A zombie whose position was trimmed: its PUT succeeds, for nothing stands there any
// more. Only the catalog knows better: the absorb is refused, nothing is acknowledged, and
// the stray goes a grace later.
func TestAZombieWhosePositionWasTrimmed(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		hour := func(o *localtier.Options) { o.Config.LeaseTime = time.Hour }
		reached, goOn := make(chan struct{}), make(chan struct{})
		sent := 0
		a := s.mustOpen(powercut.New(), nil, hour, func(o *localtier.Options) {
			o.Cut = func(step localtier.Step) error {
				if step == localtier.StepSent {
					if sent++; sent == 2 {
						close(reached) // stalled right before the PUT at position 2
						<-goOn
					}
				}
				return nil
			}
		})
		s.must(s.append(a, localtier.AckShared, "one"))
		got := make(chan error, 1)
		go func() { got <- s.append(a, localtier.AckShared, "zombie") }()
		<-reached
		b := s.mustOpen(powercut.New(), nil, hour, func(o *localtier.Options) { o.Steal, o.Dir = true, "/b" })
		s.must(s.append(b, localtier.AckShared, "two"))
		for range 4 {
			s.must(s.audit(nil, auditor.Config{}))
			time.Sleep(grace)
		}
		if row := s.chain(); row.Trimmed < 3 || len(s.slots()) != 0 {
			t.Fatalf("%+v, slots %v: position 2 is to be trimmed", row, s.slots())
		}

		close(goOn)
		if err := <-got; !errors.Is(err, localtier.ErrFenced) {
			t.Errorf("acknowledged, or unclear: %v", err)
		}
		if want := []string{segment.SlotKey(segment.Chain{Epoch: 1}, 2)}; !slices.Equal(s.slots(), want) {
			t.Fatalf("slots %v: the zombie's PUT was to succeed", s.slots())
		}
		if err := a.Close(t.Context()); !errors.Is(err, localtier.ErrUnpublished) {
			t.Errorf("the zombie's close: %v", err)
		}
		s.must(s.append(b, localtier.AckShared, "three"))
		s.must(b.Close(t.Context()))
		s.converges()
	})
}

// away is a fault of catalog or bucket that can be switched.
func away(match func(call string) bool) (*audittest.Faults, *atomic.Bool) {
	var gone atomic.Bool
	f := &audittest.Faults{Pick: func(_ int, call string) audittest.Form {
		if gone.Load() && match(call) {
			return audittest.NotApplied
		}
		return audittest.Fine
	}}
	f.Start()
	return f, &gone
}

func ofStore(call string) bool { return strings.HasPrefix(call, "store ") }

// The catalog is away for an hour: local acknowledgements go on until the lease runs out
// and no longer, for by then another may own the chain. Nothing is deleted. Once it is
// back all goes on by itself.
func TestCatalogAwayForAnHour(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		f, gone := away(func(call string) bool { return !ofStore(call) })
		a := s.mustOpen(powercut.New(), f)
		s.must(s.append(a, localtier.AckShared, "before"))
		gone.Store(true)
		before := s.mem.Keys()
		taken, refused := 0, 0
		for minute := range 60 {
			switch err := s.append(a, localtier.AckLocal, fmt.Sprint(minute)); {
			case err == nil:
				taken++
			case errors.Is(err, localtier.ErrLeaseLost):
				refused++
			default:
				t.Fatalf("minute %d: %v", minute, err)
			}
			if err := s.audit(f, auditor.Config{}); err == nil {
				t.Errorf("minute %d: an auditor without a catalog is content", minute)
			}
			time.Sleep(time.Minute)
		}
		if taken < 3 || taken > 5 || refused != 60-taken {
			t.Errorf("%d taken, %d refused: want those of a lease of %v", taken, refused, localtier.DefaultLeaseTime)
		}
		for _, key := range before {
			if !slices.Contains(s.mem.Keys(), key) {
				t.Errorf("%s was deleted meanwhile", key)
			}
		}
		gone.Store(false)
		time.Sleep(localtier.DefaultLeaseTime)
		s.must(s.append(a, localtier.AckShared, "after"))
		s.must(a.Close(t.Context()))
		s.converges()
	})
}

// The bucket is away for an hour: local acknowledgements go on, segments queue on the
// disk up to their cap and then backpressure says so. Once it is back, all is published.
func TestBucketAwayForAnHour(t *testing.T) {
	for _, capped := range []bool{false, true} {
		t.Run(fmt.Sprintf("capped=%t", capped), func(t *testing.T) {
			onSite(t, func(t *testing.T, s *site) {
				f, gone := away(ofStore)
				const most = 2 * segment.MinSegmentBytes
				a := s.mustOpen(powercut.New(), f, func(o *localtier.Options) {
					if capped {
						o.Config.MaxUnpublished = most
						o.Config.MaxBackoff = 10 * time.Minute // each try builds a large slot
						o.Config.WAL.SegmentBytes = segment.MinSegmentBytes
					}
				})
				s.must(s.append(a, localtier.AckShared, "before"))
				gone.Store(true)
				size := 1
				if capped {
					size = most / 5
				}
				refused := 0
				for minute := range 60 {
					switch err := s.append(a, localtier.AckLocal, strings.Repeat(string(rune('A'+minute)), size)); {
					case errors.Is(err, localtier.ErrBackpressure):
						refused++
					case err != nil:
						t.Fatalf("minute %d: %v", minute, err)
					}
					if minute%10 == 0 {
						_ = s.audit(f, auditor.Config{}) // it fails, and changes nothing
					}
					time.Sleep(time.Minute)
				}
				if (refused > 0) != capped || refused == 60 {
					t.Errorf("%d of 60 refused", refused)
				}
				if n := len(s.slots()); n != 1 {
					t.Errorf("%d slots: want the one from before", n)
				}
				gone.Store(false)
				time.Sleep(time.Minute)
				s.must(s.append(a, localtier.AckShared, "after"))
				s.must(a.Close(t.Context()))
				s.converges()
			})
		})
	}
}

// The catalog is rolled back: the head in the bucket knows more than the chain's row. No
// append, no delete, no verdict of fsck, and each says what to do; nothing is lost, and
// with the newer catalog all goes on.
func TestCatalogRolledBack(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		disk := powercut.New()
		a := s.mustOpen(disk, nil)
		s.must(s.append(a, localtier.AckShared, "one"))
		s.must(s.audit(nil, auditor.Config{})) // settled: a trim-check stands
		old := s.cat.Snapshot()
		s.must(s.append(a, localtier.AckShared, "two"))
		s.must(a.Close(t.Context()))
		for range 4 {
			s.must(s.audit(nil, auditor.Config{}))
			time.Sleep(grace)
		}
		now, keys := s.cat.Snapshot(), s.mem.Keys()
		s.cat.Restore(old)

		if _, err := s.open(disk, nil); !errors.Is(err, localtier.ErrRolledBack) || !strings.Contains(err.Error(), "rebuild") {
			t.Errorf("a start on a rolled-back catalog: %v", err)
		}
		for range 4 {
			time.Sleep(2 * grace)
			if err := s.audit(nil, auditor.Config{Sweep: true}); !errors.Is(err, catalog.ErrRolledBack) {
				t.Errorf("an auditor on a rolled-back catalog: %v", err)
			}
		}
		if _, err := check.Fsck(t.Context(), s.cat, objstore.Classes{standard: {s.store(nil)}}, check.Config{}); !errors.Is(err, catalog.ErrRolledBack) {
			t.Errorf("fsck: %v", err)
		}
		for _, key := range keys {
			if !slices.Contains(s.mem.Keys(), key) {
				t.Errorf("%s was deleted on a rolled-back catalog", key)
			}
		}
		s.cat.Restore(now)
		a = s.mustOpen(disk, nil)
		s.must(s.append(a, localtier.AckShared, "three"))
		s.must(a.Close(t.Context()))
		s.converges()
	})
}
