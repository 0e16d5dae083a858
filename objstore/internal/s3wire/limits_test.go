package s3wire

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// TestLimits: what a URL declares is taken, told again in the same words, and narrows what
// the store is known for, never widens it.
func TestLimits(t *testing.T) {
	var l Limits
	for name, value := range map[string]string{"parts": "equal", "range-copy": "false", "concurrency": "12"} {
		if known, err := l.Option(name, value); !known || err != nil {
			t.Errorf("%s=%s: %v %v", name, value, known, err)
		}
	}
	if l != (Limits{EqualParts: true, NoRangeCopy: true, Concurrency: 12}) || !slices.Equal(l.Query(), []string{"parts=equal", "range-copy=false", "concurrency=12"}) {
		t.Errorf("%+v, told as %v", l, l.Query())
	}
	can := objstore.Capabilities{RangeCopy: true, OrderedList: true}
	if got := l.Apply(can); got.RangeCopy || !got.EqualParts || !got.OrderedList {
		t.Errorf("narrowed to %+v", got)
	}
	if got := (Limits{}).Apply(objstore.Capabilities{EqualParts: true}); got.RangeCopy || !got.EqualParts {
		t.Errorf("no limits make %+v of a store without range copies", got)
	}
	if known, err := l.Option("part", "equal"); known || err != nil {
		t.Errorf("another's option: %v %v", known, err)
	}
	for name, value := range map[string]string{"parts": "few", "range-copy": "maybe", "concurrency": "1"} {
		if known, err := l.Option(name, value); !known || err == nil {
			t.Errorf("%s=%s was taken", name, value)
		}
	}
	if (Limits{Concurrency: 1}).Validate() == nil || (Limits{Concurrency: 2}).Validate() != nil || (Limits{}).Validate() != nil {
		t.Error("the bounds of concurrency")
	}
}

// TestConcurrencyIsHeld: more calls than connections wait for each other.
func TestConcurrencyIsHeld(t *testing.T) {
	const limit, calls = 3, 12
	var mu sync.Mutex
	now, most := 0, 0
	full := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		now++
		if most = max(most, now); now == limit {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		mu.Unlock()
		<-full // nobody is answered before the limit is reached
		mu.Lock()
		now--
		mu.Unlock()
	}))
	defer server.Close()
	transport, err := NewTransport(Options{Concurrency: limit})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			resp, err := (&http.Client{Transport: transport}).Get(server.URL)
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
		})
	}
	wg.Wait()
	if most != limit {
		t.Errorf("%d requests at once, want %d", most, limit)
	}
}
