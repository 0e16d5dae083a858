//go:build unix

package faultproxy

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
)

// TestUnknown: applied, the answer lost, and nothing can be read back. The caller is told
// "unknown" and nothing else, after a bounded number of requests; the object stands.
func TestUnknown(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		each(t, c, mutations, func(t *testing.T, m mutation, key string) {
			known := m.prepare(t, c, key)
			drop := &Rule{Name: "answer", Ops: []objstore.Op{m.op}, Fault: DropAnswer{}}
			rules := []*Rule{drop}
			if m.op != objstore.OpDelete { // which reads nothing back
				rules = append(rules, &Rule{Name: "read-back", Ops: reads, Fault: Reset{}})
			}
			c.under(t, rules...)
			s := c.store(t, nil)
			only(t, m.name, m.do(t.Context(), s, key, known, m.body(1)), objstore.ErrAmbiguous)
			c.holds(t, key, m.body(1))
			switch n := c.proxy.Hits(drop); {
			case m.op == objstore.OpDelete && n != objstore.DefaultAttempts:
				t.Errorf("%d deletes, want %d", n, objstore.DefaultAttempts)
			case m.op != objstore.OpDelete && n != 1:
				t.Errorf("%d requests, want the one: what cannot be read back is not sent again", n)
			}
			if n := s.Counters().Requests[objstore.OpHead]; n > objstore.DefaultAttempts {
				t.Errorf("%d attempts to read back, want at most %d", n, objstore.DefaultAttempts)
			}
		})
	})
}

// TestUnavailable: refused by the store in its own words, every time: known not to be
// applied, and told so.
func TestUnavailable(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		each(t, c, mutations, func(t *testing.T, m mutation, key string) {
			known := m.prepare(t, c, key)
			rule := &Rule{Name: "503", Ops: []objstore.Op{m.op}, Fault: SlowDown(0)}
			c.under(t, rule)
			only(t, m.name, m.do(t.Context(), c.store(t, nil), key, known, m.body(1)), objstore.ErrUnavailable)
			c.holds(t, key, m.untouched())
			if n := c.proxy.Hits(rule); n != objstore.DefaultAttempts {
				t.Errorf("%d requests, want %d", n, objstore.DefaultAttempts)
			}
			if ups := c.uploads(t, key); len(ups) > 0 {
				t.Errorf("uploads left: %v", ups)
			}
		})
	})
}

// TestLostForCertain: a competitor came first and every answer is lost but those of
// read-backs. Creates are told "exists"; a compare-and-set cannot know whether it stood
// for a moment in between, and is told "unknown". The competitor's object stands.
func TestLostForCertain(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		each(t, c, publishes, func(t *testing.T, m mutation, key string) {
			known := m.prepare(t, c, key)
			m.compete(t, c, key, noise(2, 100))
			c.under(t, &Rule{Name: "answer", Ops: []objstore.Op{m.op}, Fault: DropAnswer{}})
			want := m.lost
			if errors.Is(m.lost, objstore.ErrPrecondition) {
				want = objstore.ErrAmbiguous
			}
			only(t, m.name, m.do(t.Context(), c.store(t, nil), key, known, m.body(1)), want)
			c.holds(t, key, noise(2, 100))
			if ups := c.uploads(t, key); len(ups) > 0 {
				t.Errorf("uploads left: %v", ups)
			}
		})
	})
}

// TestBlackHole: the store says nothing until the caller has had enough. Whether it was
// applied or not, the caller is told "unknown", at once and without another request.
func TestBlackHole(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		for _, applied := range []bool{false, true} {
			each(t, c, mutations, func(t *testing.T, m mutation, key string) {
				if applied {
					key += "-applied"
				}
				known := m.prepare(t, c, key)
				hole := NewBlackHole(applied)
				c.under(t, &Rule{Name: "hole", Ops: []objstore.Op{m.op}, Fault: hole})
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				told := make(chan error)
				go func() { told <- m.do(ctx, c.store(t, nil), key, known, m.body(1)) }()
				if err := hole.Await(t.Context()); err != nil {
					t.Fatal(err)
				}
				from := c.proxy.Total()
				leave()
				only(t, m.name, <-told, objstore.ErrAmbiguous)
				if n := c.proxy.Total() - from; n != 0 {
					t.Errorf("%d requests after the caller left", n)
				}
				if applied {
					c.holds(t, key, m.body(1))
				} else {
					c.holds(t, key, m.untouched())
				}
			})
		}
	})
}

// TestDeadline: a silent store ends one attempt by the Store's own deadline; the request
// lands later, when the next attempt has long been answered, and changes nothing.
func TestDeadline(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		late := &ApplyLate{Silent: true}
		c.under(t, &Rule{Name: "silence", Ops: []objstore.Op{objstore.OpPut}, Times: 1, Fault: late})
		s, err := objstore.New(c.through, objstore.Config{CallTimeout: 500 * time.Millisecond, TotalTimeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.PutOnce(t.Context(), "k", []byte("mine"), nil); err != nil {
			t.Fatal(err)
		}
		landed, err := late.Release()
		if err != nil || len(landed) != 1 || landed[0].Status != http.StatusPreconditionFailed {
			t.Errorf("the late one: %+v, %v", landed, err)
		}
		c.holds(t, "k", []byte("mine"))
	})
}
