//go:build unix

package faultproxy

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// single is a fault that strikes one request, and what the caller is told.
type single struct {
	name  string
	fault Fault
	not   []objstore.Op // where it means something else, or nothing
}

// absorbed are the single faults of which no caller hears.
var absorbed = []single{
	{name: "reset", fault: Reset{}},
	{name: "reset in the body", fault: Reset{After: 50}},
	{name: "answer dropped", fault: DropAnswer{}},
	{name: "twice", fault: Duplicate{}},
	{name: "twice, first answer", fault: Duplicate{KeepFirst: true}},
	{name: "500", fault: InternalError()},
	{name: "500 after", fault: InternalError().Applied()},
	{name: "503", fault: SlowDown(0)},
	{name: "503 with Retry-After", fault: SlowDown(1)},
	{name: "503 after", fault: SlowDown(0).Applied()},
	{name: "429", fault: TooMany()},
	{name: "429 after", fault: TooMany().Applied()},
	{name: "502 page after", fault: Page(http.StatusBadGateway).Applied()},
	{name: "404 page", fault: Page(http.StatusNotFound)},
	{name: "404 page after", fault: Page(http.StatusNotFound).Applied()},
	{name: "login page", fault: Page(http.StatusOK)},
	{name: "login page after", fault: Page(http.StatusOK).Applied()},
	{name: "empty 200", fault: Empty(http.StatusOK)},
	{name: "empty 200 after", fault: Empty(http.StatusOK).Applied()},
	{name: "error in a 200", fault: ErrorIn200("InternalError")},
	{name: "error in a 200 after", fault: ErrorIn200("InternalError").Applied()},
	{name: "answer cut", fault: CutBody{After: 10}},
	{name: "answer cut, chunked", fault: CutBody{After: 10, Chunked: true}},
	{name: "request cut", fault: CutRequest{After: 50}},
	{name: "request damaged", fault: FlipRequest{At: Byte(60)}, not: []objstore.Op{objstore.OpComplete, objstore.OpDelete}}, // TestDamagedDocuments
	// On a complete it ends the upload; see TestConflict.
	{name: "409", fault: Conflict("ConditionalRequestConflict"), not: []objstore.Op{objstore.OpComplete}},
	{name: "409 aborted", fault: Conflict("OperationAborted"), not: []objstore.Op{objstore.OpComplete}},
}

// most requests that one fault may cost: the call again, a HEAD, and for a key that is
// absent a GET by the driver and one by the Store, which believe no bare 404.
const mostExtra = 4

// TestSingleFault: each fault once, in each call that changes the bucket: the caller
// hears nothing of it, the bucket holds what the call says, no upload is left, and the
// requests that it cost are few.
func TestSingleFault(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		each(t, c, mutations, func(t *testing.T, m mutation, key string) {
			plain := c.spend(t, m, key+"/plain", nil)
			for i, f := range absorbed {
				if slices.Contains(f.not, m.op) {
					continue
				}
				t.Run(f.name, func(t *testing.T) {
					extra := c.spend(t, m, fmt.Sprintf("%s/%d", key, i), f.fault) - plain
					if extra > mostExtra {
						t.Errorf("%d requests more than without the fault, want at most %d", extra, mostExtra)
					}
				})
			}
		})
	})
}

// spend makes one call under a fault that strikes its deciding request once, and gives
// the number of requests.
func (c *cell) spend(t *testing.T, m mutation, key string, fault Fault) int {
	t.Helper()
	known := m.prepare(t, c, key)
	if fault != nil {
		c.under(t, &Rule{Name: fmt.Sprintf("%T", fault), Ops: []objstore.Op{m.op}, Times: 1, Fault: fault})
	}
	from := c.proxy.Total()
	if err := m.do(t.Context(), c.store(t, nil), key, known, m.body(1)); err != nil {
		t.Fatalf("the caller is told %v", err)
	}
	spent := c.proxy.Total() - from
	c.holds(t, key, m.body(1))
	if ups := c.uploads(t, key); len(ups) > 0 {
		t.Errorf("uploads left: %v", ups)
	}
	return spent
}

// TestConflict: a 409 on a complete is told as such, nothing stands, and no upload is left.
func TestConflict(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		c.under(t, &Rule{Name: "409", Ops: []objstore.Op{objstore.OpComplete}, Fault: Conflict("ConditionalRequestConflict")})
		only(t, "commit", commit.do(t.Context(), c.store(t, nil), "k", "", commit.body(1)), objstore.ErrConflict)
		c.holds(t, "k", nil)
		if ups := c.uploads(t, "k"); len(ups) > 0 {
			t.Errorf("uploads left: %v", ups)
		}
	})
}

// TestSkewed: a wrong clock is no reason to try again, and is told as what it is.
func TestSkewed(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		each(t, c, mutations, func(t *testing.T, m mutation, key string) {
			known := m.prepare(t, c, key)
			rule := &Rule{Name: "skewed", Ops: []objstore.Op{m.op}, Fault: Skewed()}
			c.under(t, rule)
			only(t, m.name, m.do(t.Context(), c.store(t, nil), key, known, m.body(1)), objstore.ErrDenied)
			c.holds(t, key, m.untouched())
			if n := c.proxy.Hits(rule); n != 1 {
				t.Errorf("%d requests, want one", n)
			}
		})
	})
}

// TestUnrecordedUpload: the answer to a create-upload is lost. The object is published
// through another upload; the first stands without parts, recorded by nobody, where a
// listing finds it.
func TestUnrecordedUpload(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		c.under(t, &Rule{Name: "create", Ops: []objstore.Op{objstore.OpCreateUpload}, Times: 1, Fault: DropAnswer{}})
		if err := commit.do(t.Context(), c.store(t, nil), "k", "", commit.body(1)); err != nil {
			t.Fatal(err)
		}
		c.holds(t, "k", commit.body(1))
		left := c.uploads(t, "k")
		if len(left) != 1 {
			t.Fatalf("uploads left: %v, want one", left)
		}
		if err := c.past(t).Abort(t.Context(), "k", left[0].ID); err != nil {
			t.Fatal(err)
		}
		if left := c.uploads(t, "k"); len(left) != 0 {
			t.Errorf("after its abort: %v", left)
		}
	})
}
