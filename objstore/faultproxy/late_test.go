//go:build unix

package faultproxy

import (
	"bytes"
	"errors"
	"net/http"
	"testing"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore"
)

// TestLateAfterOwnRetry: the first attempt lands after the second was answered. It is
// refused by its condition, or takes away what is gone.
func TestLateAfterOwnRetry(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		each(t, c, mutations, func(t *testing.T, m mutation, key string) {
			known := m.prepare(t, c, key)
			late := &ApplyLate{}
			c.under(t, &Rule{Name: "late", Ops: []objstore.Op{m.op}, Times: 1, Fault: late})
			if err := m.do(t.Context(), c.store(t, nil), key, known, m.body(1)); err != nil {
				t.Fatal(err)
			}
			info, _ := c.past(t).Head(t.Context(), key) // nothing to see after a delete
			landed := c.release(t, late, 1)[0]
			// versitygw answers a repeated complete with its success, and changes nothing.
			refused := landed.Status == http.StatusPreconditionFailed || landed.Status == http.StatusNotFound
			if m.op == objstore.OpPut && !refused || m.op == objstore.OpComplete && !refused && c.server.Kind == realstore.KindMinio {
				t.Errorf("the late one was not refused: %+v", landed)
			}
			c.holds(t, key, m.body(1))
			if again, _ := c.past(t).Head(t.Context(), key); again.ETag != info.ETag || !again.Modified.Equal(info.Modified) {
				t.Errorf("written again: %+v, was %+v", again, info)
			}
		})
	})
}

// TestLateBetweenAttempts: the first attempt lands before the second, which is refused
// because of it. The caller won, and hears of nothing.
func TestLateBetweenAttempts(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		each(t, c, mutations, func(t *testing.T, m mutation, key string) {
			known := m.prepare(t, c, key)
			late := &ApplyLate{}
			c.under(t, &Rule{Name: "late", Ops: []objstore.Op{m.op}, Times: 1, Fault: late})
			s := c.store(t, func() { c.release(t, late, -1) })
			if err := m.do(t.Context(), s, key, known, m.body(1)); err != nil {
				t.Fatal(err)
			}
			c.holds(t, key, m.body(1))
			if ups := c.uploads(t, key); len(ups) > 0 {
				t.Errorf("uploads left: %v", ups)
			}
		})
	})
}

// TestLateAfterCompetitor: another wins between two attempts, and the first lands when
// all is over. It changes nothing, there is one winner, and the loser is told.
func TestLateAfterCompetitor(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		each(t, c, publishes, func(t *testing.T, m mutation, key string) {
			known := m.prepare(t, c, key)
			late := &ApplyLate{}
			c.under(t, &Rule{Name: "late", Ops: []objstore.Op{m.op}, Times: 1, Fault: late})
			won := false
			s := c.store(t, func() {
				if !won {
					m.compete(t, c, key, noise(2, 100))
					won = true
				}
			})
			want := m.lost
			if errors.Is(m.lost, objstore.ErrPrecondition) {
				want = objstore.ErrAmbiguous // it may have stood before the competitor's
			}
			only(t, m.name, m.do(t.Context(), s, key, known, m.body(1)), want)
			c.release(t, late, 1)
			c.holds(t, key, noise(2, 100))
			if ups := c.uploads(t, key); len(ups) > 0 {
				t.Errorf("uploads left: %v", ups)
			}
		})
	})
}

// TestAllLate: every attempt is held, the caller is told "unknown", and that is what it
// is: they land later, or lose to a competitor who comes meanwhile. The upload of a
// commit is left alone, since its complete may yet land.
func TestAllLate(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		for _, competitor := range []bool{false, true} {
			each(t, c, publishes, func(t *testing.T, m mutation, key string) {
				want := m.body(1)
				if competitor {
					key += "-lost"
					want = noise(2, 100)
				}
				known := m.prepare(t, c, key)
				late := &ApplyLate{}
				c.under(t, &Rule{Name: "late", Ops: []objstore.Op{m.op}, Fault: late})
				only(t, m.name, m.do(t.Context(), c.store(t, nil), key, known, m.body(1)), objstore.ErrAmbiguous)
				c.holds(t, key, m.untouched())
				if n := len(c.uploads(t, key)); n != map[objstore.Op]int{objstore.OpComplete: 1}[m.op] {
					t.Errorf("%d uploads stand", n)
				}
				if competitor {
					m.compete(t, c, key, want)
				}
				c.release(t, late, objstore.DefaultAttempts)
				c.holds(t, key, want)
				c.proxy.Clear()
				if errors.Is(m.lost, objstore.ErrExists) {
					only(t, "a create after it", m.do(t.Context(), c.store(t, nil), key, known, m.body(3)), objstore.ErrExists)
				} else {
					only(t, "a replace after it", m.do(t.Context(), c.store(t, nil), key, known, m.body(3)), objstore.ErrPrecondition)
				}
				c.holds(t, key, want)
			})
		}
	})
}

// TestLateDelete: a delete has no condition. One that lands late takes what stands
// under its key by then: so no key is ever used twice.
func TestLateDelete(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		key := "d/used-twice"
		remove.prepare(t, c, key)
		late := &ApplyLate{}
		c.under(t, &Rule{Name: "late", Ops: []objstore.Op{objstore.OpDelete}, Times: 1, Fault: late})
		if err := remove.do(t.Context(), c.store(t, nil), key, "", nil); err != nil {
			t.Fatal(err)
		}
		putOnce.compete(t, c, key, []byte("a second life"))
		c.release(t, late, 1)
		c.holds(t, key, nil)
	})
}

// release lets land what is held, n requests (-1: any number), of which at most one may
// have changed anything.
func (c *cell) release(t *testing.T, late *ApplyLate, n int) []Landed {
	t.Helper()
	landed, err := late.Release()
	if err != nil || (n >= 0 && len(landed) != n) {
		t.Fatalf("landed: %+v, %v; want %d", landed, err, n)
	}
	applied := 0
	for _, l := range landed {
		if l.Status < http.StatusMultipleChoices && l.Call.Op == objstore.OpPut {
			applied++
		}
	}
	if applied > 1 {
		t.Errorf("%d late puts were applied: %+v", applied, landed)
	}
	return landed
}

// TestTwoCreators: two writers create one key while every answer of the one is held and
// its requests land at once, late, or among the other's. One body stands, for good, and
// whoever was told that it won wrote it.
func TestTwoCreators(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		for _, order := range []string{"released before", "released between", "released after"} {
			each(t, c, creates, func(t *testing.T, m mutation, key string) {
				key += "/" + order[9:]
				late := &ApplyLate{}
				c.under(t, &Rule{Name: "late", Ops: []objstore.Op{m.op}, Times: objstore.DefaultAttempts, Fault: late})
				only(t, "the first", m.do(t.Context(), c.store(t, nil), key, "", m.body(1)), objstore.ErrAmbiguous)
				if order == "released before" {
					c.release(t, late, objstore.DefaultAttempts)
				}
				c.proxy.Add(&Rule{Name: "first attempt of the second", Ops: []objstore.Op{m.op}, Times: 1, Fault: Reset{}})
				s := c.store(t, func() {
					if order == "released between" {
						c.release(t, late, -1)
					}
				})
				err := m.do(t.Context(), s, key, "", m.body(2))
				if order == "released after" {
					c.release(t, late, objstore.DefaultAttempts)
				}
				switch got := c.stands(t, key); {
				case err == nil && bytes.Equal(got, m.body(2)) && order == "released after":
				case is(err, objstore.ErrExists) && bytes.Equal(got, m.body(1)) && order != "released after":
				default:
					t.Errorf("the second is told %v, and %d bytes stand", err, len(got))
				}
			})
		}
	})
}
