package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/segment"
)

// appendOne appends and says who was asked for it.
func appendOne(t *testing.T, n *hosts, c *Client, stream string) ([]string, error) {
	t.Helper()
	before := len(n.asked())
	_, err := c.Append(t.Context(), stream, rowsOf("x", "y"), AppendOptions{})
	return n.asked()[before:], err
}

// TestToTheOwner: 421 is followed, remembered for the stream, and forgotten when that server
// does not answer.
func TestToTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		n.set("a", notOwner("http://b"))
		n.set("b", ok())
		n.set("c", ok())
		c := n.client(t, Config{})
		for i, want := range [][]string{{"a", "b"}, {"b"}} {
			if asked, err := appendOne(t, n, c, "s"); err != nil || !slices.Equal(asked, want) {
				t.Fatalf("append %d asked %v: %v", i, asked, err)
			}
		}
		if asked, err := appendOne(t, n, c, "other"); err != nil || !slices.Equal(asked, []string{"a", "b"}) {
			t.Fatalf("another stream asked %v: %v", asked, err)
		}
		n.set("b", nil)
		n.set("a", notOwner("http://c"))
		if asked, err := appendOne(t, n, c, "s"); err != nil || !slices.Equal(asked, []string{"b", "a", "c"}) {
			t.Fatalf("after the owner's end: %v: %v", asked, err)
		}
		// The other stream's owner went with it.
		if asked, err := appendOne(t, n, c, "other"); err != nil || !slices.Equal(asked, []string{"a", "c"}) {
			t.Fatalf("the other stream: %v: %v", asked, err)
		}
	})
}

// TestTakeover: while the owner is gone and nobody has its shards, an append waits for whoever
// takes them.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		n.set("a", notOwner("http://b"))
		c := n.client(t, Config{})
		go func() {
			time.Sleep(20 * time.Second)
			n.set("a", notOwner("http://c"))
			n.set("c", ok())
		}()
		began := time.Now()
		_, err := appendOne(t, n, c, "s")
		if took := time.Since(began); err != nil || took < 20*time.Second || took > 30*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		if tries := len(n.asked()); tries > 60 {
			t.Errorf("%d requests in 20 seconds", tries)
		}
	})
}

// TestLoops: servers that send each other's clients round end in patience, with few requests.
func TestLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		n.set("a", notOwner("http://b"))
		n.set("b", notOwner("http://a"))
		for i := range 30 { // each names a fresh one
			n.set(fmt.Sprint("x", i), notOwner(fmt.Sprint("http://x", i+1)))
		}
		for _, url := range []string{"http://a", "http://x0", "http://a,http://b"} {
			c := n.client(t, Config{URL: url, Patience: 10 * time.Second})
			began := time.Now()
			asked, err := appendOne(t, n, c, "s")
			if took := time.Since(began); !errors.Is(err, ErrNotOwner) || took < 10*time.Second || took > 20*time.Second || len(asked) > 120 {
				t.Errorf("%s: %d requests, after %v: %v", url, len(asked), took, err)
			}
		}
		c := n.client(t, Config{URL: "http://a", Patience: -1})
		if asked, err := appendOne(t, n, c, "s"); !errors.Is(err, ErrNotOwner) || len(asked) > 3 {
			t.Errorf("without patience: %v: %v", asked, err)
		}
	})
}

// TestPoisoned: a shard that takes nothing before somebody sees to it ends a call in patience; one
// that is only busy does not.
func TestPoisoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		for code, patient := range map[string]bool{"poisoned": true, "fenced": true, "backpressure": false} {
			n.set("a", answering(503, map[string]string{"Retry-After": "1"}, `{"status":503,"code":"`+code+`"}`))
			c := n.client(t, Config{Patience: 10 * time.Second})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			began := time.Now()
			_, err := c.Append(ctx, "s", []segment.Row{{Payload: []byte("row")}}, AppendOptions{})
			cancel()
			want := time.Minute
			if patient {
				want = 10 * time.Second
			}
			if took := time.Since(began); !errors.Is(err, ErrUnavailable) || took < want || took > want+10*time.Second {
				t.Errorf("%s: after %v: %v", code, took, err)
			}
		}
	})
}

// TestTrust: an owner is an address, not by a weaker scheme than the server that named it; and a
// redirect leads nowhere. Neither rows nor token get there.
func TestTrust(t *testing.T) {
	for owner, from := range map[string]string{
		"http://evil": "https://a", "ftp://evil": "http://a", "http://evil/path": "http://a", "http://u:p@evil": "http://a",
		"evil": "http://a", "http://evil?x": "http://a", "//evil": "http://a",
	} {
		n := &hosts{}
		n.set("a", notOwner(owner))
		n.set("evil", ok())
		c := n.client(t, Config{URL: from, Token: func(context.Context) (string, error) { return "secret", nil }, Patience: -1})
		if asked, err := appendOne(t, n, c, "s"); !errors.Is(err, ErrNotOwner) || !slices.Equal(asked, []string{"a"}) {
			t.Errorf("%s named by %s: %v: %v", owner, from, asked, err)
		}
	}
	n := &hosts{}
	n.set("a", answering(307, map[string]string{"Location": "http://evil/v1/streams/s/rows"}, ""))
	n.set("evil", ok())
	c := n.client(t, Config{Patience: -1})
	var p *Problem
	if asked, err := appendOne(t, n, c, "s"); !errors.As(err, &p) || p.Status != 307 || !slices.Equal(asked, []string{"a"}) {
		t.Errorf("a redirect: %v: %v", asked, err)
	}
	n.set("a", notOwner("https://b"))
	n.set("b", ok())
	if asked, err := appendOne(t, n, c, "s"); err != nil || !slices.Equal(asked, []string{"a", "b"}) {
		t.Errorf("to a stricter scheme: %v: %v", asked, err)
	}
}

// TestRefusedForNow: a 503 is come back from when the server said, until the context ends.
func TestRefusedForNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		told := 0
		c := n.client(t, Config{OnRetry: func(string, error) { told++ }, Patience: time.Second})
		n.set("a", steps(t, busy("backpressure", "7"), busy("backpressure", "7"), ok()))
		began := time.Now()
		asked, err := appendOne(t, n, c, "s")
		if took := time.Since(began); err != nil || took < 14*time.Second || took > 20*time.Second || told != 1 {
			t.Fatalf("%v after %v, told %d times: %v", asked, took, told, err)
		}
		n.set("a", busy("store-unavailable", "2"))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		before := len(n.asked())
		_, err = c.Append(ctx, "s", rowsOf("x"), AppendOptions{})
		tries := len(n.asked()) - before
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrUnavailable) || tries < 100 || tries > 151 {
			t.Errorf("%d tries: %v", tries, err)
		}
	})
}

// TestAskedForever: a server, or a proxy, that asks for more seconds than a time.Duration holds is
// come back from after a minute, as one that asks for a day.
func TestAskedForever(t *testing.T) {
	for _, after := range []string{"86400", "9223372036", "9223372037", "10000000000", "18446744074", "9223372036854775807", "9223372036854775808"} {
		synctest.Test(t, func(t *testing.T) {
			n := &hosts{}
			n.set("a", steps(t, busy("busy", after), ok()))
			c := n.client(t, Config{})
			began := time.Now()
			_, err := appendOne(t, n, c, "s")
			if took := time.Since(began); err != nil || took < time.Minute || took > 2*time.Minute {
				t.Errorf("asked for %s s: back after %v: %v", after, took, err)
			}
		})
	}
}

// TestOnceAndRefused: without a key only the refusals that wrote nothing are come back from.
func TestOnceAndRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		c := n.client(t, Config{})
		n.set("a", steps(t, busy("busy", "1"), ok(), busy("timeout", "1")))
		if _, err := c.Append(t.Context(), "s", rowsOf("x", "y"), AppendOptions{AtMostOnce: true}); err != nil {
			t.Error(err)
		}
		if _, err := c.Append(t.Context(), "s", rowsOf("x"), AppendOptions{AtMostOnce: true}); !errors.Is(err, ErrUnknown) || !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
	})
}

// TestFullDisk: 507 is a fault that may pass, and is waited for. Of an append that was taken in
// part nothing is sent again: that would be there twice.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		c := n.client(t, Config{})
		full := func(more string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusInsufficientStorage)
				_, _ = io.WriteString(w, `{"status":507,"code":"disk-full","title":"disk full"`+more+`}`)
			}
		}
		n.set("a", steps(t, full(""), ok()))
		if _, err := c.Append(t.Context(), "s", rowsOf("x", "y"), AppendOptions{AtMostOnce: true}); err != nil {
			t.Error(err)
		}
		n.set("a", steps(t, full(`,"durable":{"rows":2,"epoch":1,"first":7,"last":8}`)))
		_, err := c.Append(t.Context(), "s", rowsOf("x", "y", "z"), AppendOptions{AtMostOnce: true})
		var p *Problem
		if !errors.Is(err, ErrPartial) || !errors.As(err, &p) || *p.Durable != (Durable{2, 1, 7, 8}) || errors.Is(err, ErrUnknown) || !errors.Is(err, ErrUnavailable) {
			t.Errorf("two rows of three are there: %v", err)
		}
		p = &Problem{Status: http.StatusInsufficientStorage, Code: "disk-full"}
		if errors.Is(p, ErrPartial) || !errors.Is(p, ErrUnavailable) {
			t.Error("a full disk that wrote nothing")
		}
	})
}

// TestMovingOn: a server that lost its shard does not hide the one that has it.
func TestMovingOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		n.set("a", busy("fenced", "1"))
		n.set("b", ok())
		c := n.client(t, Config{URL: "http://a, http://b/"})
		if asked, err := appendOne(t, n, c, "s"); err != nil || !slices.Equal(asked, []string{"a", "b"}) {
			t.Errorf("%v: %v", asked, err)
		}
	})
}

// TestNobody: a client that no server ever answered asks each URL once; one that was answered
// goes on for its patience.
func TestNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		c := n.client(t, Config{URL: "http://a,http://b"})
		if asked, err := appendOne(t, n, c, "s"); !errors.Is(err, ErrUnreachable) || !errors.Is(err, errRefused) || errors.Is(err, ErrUnknown) || len(asked) != 2 {
			t.Fatalf("%v: %v", asked, err)
		}
		n.set("b", ok())
		if asked, err := appendOne(t, n, c, "s"); err != nil || len(asked) != 2 {
			t.Fatalf("%v: %v", asked, err)
		}
		n.set("b", nil)
		began := time.Now()
		asked, err := appendOne(t, n, c, "s")
		if took := time.Since(began); !errors.Is(err, ErrUnreachable) || took < DefaultPatience || took > DefaultPatience+longestWait {
			t.Errorf("%v after %v: %v", asked, took, err)
		}
	})
}

// TestHung: a server that takes a request and says nothing is given up, and asked again.
func TestHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		hung := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		n.set("a", steps(t, ok(), hung, ok()))
		c := n.client(t, Config{})
		for range 2 {
			if _, err := appendOne(t, n, c, "s"); err != nil {
				t.Fatal(err)
			}
		}
		n.done.Wait()
	})
}

// TestReaderTakesNoRows: a reader among the URLs does not stop an append.
func TestReaderTakesNoRows(t *testing.T) {
	n := &hosts{}
	n.set("a", answering(501, nil, `{"status":501,"code":"read-only","title":"this process takes no rows"}`))
	n.set("b", ok())
	c := n.client(t, Config{URL: "http://a,http://b"})
	if asked, err := appendOne(t, n, c, "s"); err != nil || !slices.Equal(asked, []string{"a", "b"}) {
		t.Errorf("%v: %v", asked, err)
	}
	var p *Problem
	c = n.client(t, Config{})
	if _, err := appendOne(t, n, c, "s"); !errors.As(err, &p) || p.Code != "read-only" {
		t.Errorf("%v", err)
	}
}

// TestNotSent: what a transport refuses to send is the caller's at once.
func TestNotSent(t *testing.T) {
	why := errors.New("not over this line")
	c, err := New(Config{URL: "http://a,http://b", HTTP: &http.Client{Transport: refusing{why}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(t.Context(), "s", rowsOf("x"), AppendOptions{}); !errors.Is(err, why) || errors.Is(err, ErrUnknown) || errors.Is(err, ErrUnreachable) {
		t.Error(err)
	}
}

// TestHandshake: what a server is not trusted with was not carried out.
func TestHandshake(t *testing.T) {
	over, plain := httptest.NewTLSServer(http.NotFoundHandler()), httptest.NewServer(http.NotFoundHandler())
	defer over.Close()
	defer plain.Close()
	over.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, url := range []string{over.URL, "https" + strings.TrimPrefix(plain.URL, "http")} {
		c, err := New(Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Append(t.Context(), "s", rowsOf("x"), AppendOptions{AtMostOnce: true}); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

type refusing struct{ err error }

func (r refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, NotSent(r.err) }

// TestConfig: what cannot work is refused at once, without a password in the message.
func TestConfig(t *testing.T) {
	for _, cfg := range []Config{
		{},
		{URL: "localhost:8420"},
		{URL: "http://a,"},
		{URL: "ftp://a"},
		{URL: "http://user:pass@a"},
		{URL: "http://a?x=1"},
		{URL: "http://a", Encoding: "br"},
		{URL: "http://a", AnswerTime: -1},
		{URL: "http://a", Silence: -1},
	} {
		if _, err := New(cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", cfg, err)
		} else if strings.Contains(err.Error(), "pass") {
			t.Errorf("%v", err)
		}
	}
}
