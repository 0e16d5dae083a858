package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/segment"
)

// tail is a server's streams: what was appended, in order.
type tail struct {
	mu       sync.Mutex
	rows     map[string][]string
	last     map[string]uint64 // a producer's
	requests int
	delay    time.Duration
}

func (s *tail) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	time.Sleep(s.delay) // in virtual time: an fsync
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	q := r.URL.Query()
	if n, err := strconv.ParseUint(q.Get("sequence"), 10, 64); err != nil || n != s.last[q.Get("producer")]+1 {
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"code":"sequence"}`)
		return
	}
	s.last[q.Get("producer")]++
	name := r.URL.Path
	first := len(s.rows[name]) + 1
	for line := range bytes.Lines(body) {
		s.rows[name] = append(s.rows[name], string(bytes.TrimSuffix(line, []byte("\n"))))
	}
	fmt.Fprintf(w, `{"epoch":1,"term":2,"first":%d,"last":%d}`, first, len(s.rows[name]))
}

// TestBatcher: rows of many goroutines share requests, each gets its own position, and one
// goroutine's keep their order.
func TestBatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		srv := &tail{rows: map[string][]string{}, last: map[string]uint64{}, delay: 10 * time.Millisecond}
		n.set("a", srv)
		b, err := n.client(t, Config{}).NewBatcher(BatcherConfig{Rows: 40, Bytes: 1000, Posts: 2})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		const each, streams, writers = 20, 3, 30
		for g := range writers {
			wg.Go(func() {
				last := segment.Seq(0)
				for i := range each {
					text := fmt.Sprintf("row-%02d-%02d", g, i)
					at, err := b.Append(t.Context(), fmt.Sprint("s", g%streams), segment.Row{Payload: []byte(text)})
					if err != nil || at.Seq <= last || at.Term != 2 {
						t.Errorf("%s: %v after %d: %v", text, at, last, err)
						return
					}
					last = at.Seq
					srv.mu.Lock()
					if got := srv.rows[fmt.Sprintf("/v1/streams/s%d/rows", g%streams)][at.Seq-1]; got != text {
						t.Errorf("%s stands where %s was said to", got, text)
					}
					srv.mu.Unlock()
				}
			})
		}
		wg.Wait()
		b.Close()
		if len(srv.last) != streams {
			t.Errorf("%d producers for %d streams", len(srv.last), streams)
		}
		if srv.requests > each*writers/3 {
			t.Errorf("%d requests for %d rows", srv.requests, each*writers)
		}
		if _, err := b.Append(t.Context(), "s", segment.Row{}); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

// TestBatcherBounds: a request holds so many rows and bytes, and a row that is larger goes alone.
func TestBatcherBounds(t *testing.T) {
	b := &Batcher{cfg: BatcherConfig{Rows: 3, Bytes: 10}, waiting: map[string]*stack{}, idle: map[string]*Appender{}}
	s := &stack{}
	for _, size := range []int{1, 1, 1, 1, 9, 2, 50, 10, 0} {
		s.rows = append(s.rows, &waiting{row: segment.Row{Payload: make([]byte, size)}})
	}
	for _, want := range []int{3, 2, 1, 1, 2, 0} {
		if got := b.next("s", s, nil); len(got) != want {
			t.Errorf("%d rows, want %d", len(got), want)
		}
	}
}

// TestBatcherLeave: a caller that gives up before its row was sent is sure of it, one whose row
// is under way is not, and a request that nobody waits for ends.
func TestBatcherLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		bodies := make(chan string, 10)
		n.set("a", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // in memory
			bodies <- string(body)
			<-r.Context().Done()
		}))
		b, err := n.client(t, Config{AnswerTime: time.Hour}).NewBatcher(BatcherConfig{})
		if err != nil {
			t.Fatal(err)
		}
		one, stopOne := context.WithCancel(t.Context())
		two, stopTwo := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		go func() { _, err := b.Append(one, "s", segment.Row{Payload: []byte("one")}); errs <- err }()
		<-bodies
		go func() { _, err := b.Append(two, "s", segment.Row{Payload: []byte("two")}); errs <- err }()
		synctest.Wait()
		stopTwo()
		if err := <-errs; !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnknown) {
			t.Errorf("not sent: %v", err)
		}
		began := time.Now()
		stopOne()
		if err := <-errs; !errors.Is(err, ErrUnknown) {
			t.Errorf("under way: %v", err)
		}
		b.Close()
		n.done.Wait()
		if took := time.Since(began); took > time.Second {
			t.Errorf("a request that nobody waited for ended after %v", took)
		}
		if len(bodies) != 0 {
			t.Errorf("%q was sent though its caller had gone", <-bodies)
		}
	})
}

func TestBatcherConfig(t *testing.T) {
	c := (&hosts{}).client(t, Config{})
	for _, cfg := range []BatcherConfig{{Rows: -1}, {Append: AppendOptions{Key: "k"}}, {Append: AppendOptions{Producer: "p"}}} {
		if _, err := c.NewBatcher(cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
