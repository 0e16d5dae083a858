package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/segment"
)

// answerWith is a body of lines, and how it ends.
type answerWith struct {
	head  map[string]string
	lines []string
	end   func(r *http.Request) // nil: whole
}

func (a answerWith) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for k, v := range a.head {
		w.Header().Set(k, v)
	}
	w.WriteHeader(http.StatusOK)
	for _, l := range a.lines {
		if _, err := io.WriteString(w, l); err != nil {
			return
		}
	}
	if a.end != nil {
		a.end(r)
	}
}

func cutOff(*http.Request) { panic(http.ErrAbortHandler) }

func silent(r *http.Request) { <-r.Context().Done() }

func lineOf(epoch, seq int) string {
	return fmt.Sprintf(`{"stream":"s","epoch":%d,"seq":%d,"ts":"2026-01-02T03:04:05.000000006Z","payload":"row %d"}`+"\n", epoch, seq, seq)
}

func tokenLine(epoch, term, seq int) string {
	return fmt.Sprintf(`{"stream":"s","epoch":%d,"seq":%d,"ts":"2026-01-02T03:04:05Z","payload":"","token":"e%d.t%d.%d"}`+"\n", epoch, seq, epoch, term, seq)
}

func problemLine(status int, code, more string) string {
	return fmt.Sprintf(`{"error":{"status":%d,"code":%q,"title":"t"%s}}`+"\n", status, code, more)
}

// collect reads until the end or so many rows.
func collect(ctx context.Context, c *Client, o ReadOptions, most int) (seqs []segment.Seq, err error) {
	for row, e := range c.Rows(ctx, "s", o) {
		if e != nil {
			return seqs, e
		}
		if seqs = append(seqs, row.Seq); len(seqs) == most {
			break
		}
	}
	return seqs, nil
}

// afters are the positions that each read began behind.
func afters(n *hosts) (out []string) {
	for _, r := range n.requests() {
		out = append(out, r.URL.Query().Get("after"))
	}
	return out
}

func TestRowsWhole(t *testing.T) {
	n := &hosts{}
	odd := `{"stream":"s","epoch":2,"seq":5,"ts":"1969-12-31T23:59:59.999999999Z","txn_base64":"/w==","payload_base64":"/v8="}` + "\n"
	n.set("a", answerWith{lines: []string{lineOf(1, 3), "\n", odd}})
	c := n.client(t, Config{})
	var got []Row
	for row, err := range c.Rows(t.Context(), "s", ReadOptions{From: "3", To: "e2.t1.9", Limit: 10}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row)
	}
	if q := n.requests()[0].URL.RawQuery; q != "from=3&limit=10&to=e2.t1.9" {
		t.Error(q)
	}
	if len(got) != 2 || string(got[0].Payload) != "row 3" || got[0].Row.Time%1e9 != 6 || got[0].Position() != "1.3" ||
		got[1].Time != -1 || !bytes.Equal(got[1].Payload, []byte{0xfe, 0xff}) || !bytes.Equal(got[1].Txn, []byte{0xff}) {
		t.Errorf("%+v", got)
	}
	for _, o := range []ReadOptions{{From: "1", After: "1"}, {Follow: true, To: "3"}, {Limit: -1}} {
		if _, err := collect(t.Context(), c, o, 0); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestResume: a read that is cut goes on behind its last row, by the best position it has, at
// whatever server answers then.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		own := map[string]string{epochHeader: "2", termHeader: "7"}
		n.set("a", steps(t,
			answerWith{lines: []string{lineOf(1, 3), lineOf(1, 4)}, end: cutOff},
			answerWith{head: own, lines: []string{lineOf(1, 9), lineOf(2, 1)[:30]}, end: cutOff}, // within a line
			answerWith{head: own, lines: []string{lineOf(2, 1)}, end: cutOff},
			answerWith{lines: []string{tokenLine(2, 9, 2)}, end: cutOff},
			answerWith{lines: []string{lineOf(2, 3)[:30]}}, // as some proxies end a body that was cut
			answerWith{lines: []string{lineOf(2, 3)}},
		))
		c := n.client(t, Config{})
		got, err := collect(t.Context(), c, ReadOptions{From: "3", Limit: 100}, 0)
		if err != nil || !slices.Equal(got, []segment.Seq{3, 4, 9, 1, 2, 3}) {
			t.Fatalf("%v: %v", got, err)
		}
		if a := afters(n); !slices.Equal(a, []string{"", "1.4", "1.9", "e2.t7.1", "e2.t9.2", "e2.t9.2"}) {
			t.Errorf("%q", a)
		}
		last := n.requests()[4].URL.Query()
		if last.Get("from") != "" || last.Get("limit") != "95" {
			t.Errorf("%v", last)
		}
	})
}

// TestReadEnds: what a read ends with, and what it delivered before.
func TestReadEnds(t *testing.T) {
	first := func(p *Problem) bool { return p.First != nil && *p.First == 9 && p.From == "1.9" }
	for name, c := range map[string]struct {
		then []string
		kind error
		ok   func(p *Problem) bool
	}{
		"trimmed":   {[]string{problemLine(410, "trimmed", `,"first":9,"from":"1.9"`)}, ErrTrimmed, first},
		"lost":      {[]string{problemLine(500, "lost", "")}, ErrDamage, func(p *Problem) bool { return p.First == nil && p.From == "" }},
		"accepted":  {[]string{problemLine(500, "lost", `,"first":9,"from":"1.9"`)}, ErrDamage, first},
		"corrupt":   {[]string{problemLine(500, "corrupt", "")}, ErrDamage, nil},
		"forked":    {[]string{problemLine(409, "forked", "")}, ErrForked, nil},
		"double":    {[]string{lineOf(1, 4)}, ErrOrder, nil},
		"backwards": {[]string{lineOf(1, 3)}, ErrOrder, nil},
		"no json":   {[]string{"<html>\n"}, ErrAnswer, nil},
		"no place":  {[]string{`{"stream":"s"}` + "\n"}, ErrAnswer, nil},
	} {
		t.Run(name, func(t *testing.T) {
			n := &hosts{}
			n.set("a", answerWith{lines: append([]string{lineOf(1, 4)}, c.then...)})
			got, err := collect(t.Context(), n.client(t, Config{}), ReadOptions{}, 0)
			if !errors.Is(err, c.kind) || !slices.Equal(got, []segment.Seq{4}) || len(n.asked()) != 1 {
				t.Errorf("%v, %d requests: %v", got, len(n.asked()), err)
			}
			var p *Problem
			if c.ok != nil && (!errors.As(err, &p) || !c.ok(p)) {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestDoubleAfterResume: a server that begins too early on a resumed read is found out.
func TestDoubleAfterResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		n.set("a", steps(t, answerWith{lines: []string{lineOf(1, 4), lineOf(1, 5)}, end: cutOff}, answerWith{lines: []string{lineOf(1, 5)}}))
		got, err := collect(t.Context(), n.client(t, Config{}), ReadOptions{}, 0)
		if !errors.Is(err, ErrOrder) || !slices.Equal(got, []segment.Seq{4, 5}) {
			t.Errorf("%v: %v", got, err)
		}
	})
}

// TestFollow: heartbeats are no rows, an end of the body is no end, another owner is gone to,
// a wait of the server's is waited for, and a dead connection is noticed.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		n.set("a", steps(t,
			answerWith{lines: []string{tokenLine(1, 1, 1), "\n", "\n", tokenLine(1, 1, 2)}},
			answerWith{lines: []string{"\n", problemLine(503, "closing", "")}},
			busy("closing", "1"),
			answerWith{lines: []string{tokenLine(1, 1, 3), problemLine(421, "not-owner", `,"owner":"http://b"`)}},
		))
		n.set("b", steps(t,
			answerWith{lines: []string{tokenLine(1, 2, 4)}, end: silent},
			answerWith{end: silent},
			answerWith{lines: []string{tokenLine(1, 2, 5)}, end: silent},
		))
		c := n.client(t, Config{})
		began := time.Now()
		got, err := collect(t.Context(), c, ReadOptions{Follow: true}, 5)
		if err != nil || !slices.Equal(got, []segment.Seq{1, 2, 3, 4, 5}) {
			t.Fatalf("%v: %v", got, err)
		}
		if took := time.Since(began); took < 2*DefaultSilence || took > 2*DefaultSilence+10*time.Second {
			t.Errorf("two dead connections were noticed after %v", took)
		}
		if a := afters(n); !slices.Equal(a, []string{"", "e1.t1.2", "e1.t1.2", "e1.t1.2", "e1.t1.3", "e1.t2.4", "e1.t2.4"}) {
			t.Errorf("%q", a)
		}
		n.done.Wait()
	})
}

// TestHeartbeatsKeep: a quiet stream's connection is kept as long as its server sends heartbeats.
func TestHeartbeatsKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		n.set("a", steps(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for range 100 {
				time.Sleep(15 * time.Second)
				if _, err := io.WriteString(w, "\n"); err != nil {
					t.Error(err)
					return
				}
			}
			answerWith{lines: []string{tokenLine(1, 1, 1)}, end: silent}.ServeHTTP(w, r)
		})))
		if got, err := collect(t.Context(), n.client(t, Config{}), ReadOptions{Follow: true}, 1); err != nil || len(got) != 1 {
			t.Errorf("%v: %v", got, err)
		}
		n.done.Wait()
	})
}

// TestFollowGivesUp: servers that cut every answer before a row, or are all gone, end a follow
// with the client's patience; a row begins it anew.
func TestFollowGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		row, cuts := 0, 0
		n.set("a", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if cuts++; cuts%8 == 0 && row < 5 { // some 20 seconds apart
				row++
				answerWith{lines: []string{tokenLine(1, 1, row)}, end: cutOff}.ServeHTTP(w, r)
			}
			answerWith{end: cutOff}.ServeHTTP(w, r)
		}))
		began := time.Now()
		got, err := collect(t.Context(), n.client(t, Config{}), ReadOptions{Follow: true}, 0)
		if !errors.Is(err, ErrCut) || len(got) != 5 {
			t.Errorf("%v: %v", got, err)
		}
		if took := time.Since(began); took < DefaultPatience+20*time.Second || took > 10*time.Minute || cuts > 200 {
			t.Errorf("%d requests in %v", cuts, took)
		}
		n.set("a", steps(t, answerWith{lines: []string{tokenLine(1, 1, 1)}, end: func(*http.Request) { n.set("a", nil); cutOff(nil) }}))
		if got, err := collect(t.Context(), n.client(t, Config{}), ReadOptions{Follow: true}, 0); !errors.Is(err, ErrUnreachable) || len(got) != 1 {
			t.Errorf("%v: %v", got, err)
		}
	})
}

// TestReadStops: a caller that wants no more, and one whose context ends, leave nothing behind.
func TestReadStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		n.set("a", answerWith{lines: []string{tokenLine(1, 1, 1)}, end: silent})
		c := n.client(t, Config{})
		if got, err := collect(t.Context(), c, ReadOptions{Follow: true}, 1); err != nil || len(got) != 1 {
			t.Errorf("%v: %v", got, err)
		}
		if got, err := collect(t.Context(), c, ReadOptions{Follow: true, Limit: 1}, 0); err != nil || len(got) != 1 {
			t.Errorf("limit: %v: %v", got, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		time.AfterFunc(time.Second, func() { cancel(why) })
		if got, err := collect(ctx, c, ReadOptions{Follow: true}, 0); !errors.Is(err, why) || len(got) != 1 {
			t.Errorf("%v: %v", got, err)
		}
		n.done.Wait()
	})
}

// TestAtTheOwner: a read that wants the owner goes there, and back if it does not answer.
func TestAtTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		cold := map[string]string{ownerHeader: "http://b"}
		n.set("a", steps(t,
			answerWith{head: cold, lines: []string{lineOf(1, 1)}},
			answerWith{head: cold, lines: []string{lineOf(1, 1)}},
			answerWith{head: cold, lines: []string{lineOf(1, 1)}},
			answerWith{head: cold, lines: []string{lineOf(1, 1)}},
		))
		n.set("b", steps(t, answerWith{lines: []string{lineOf(1, 1), lineOf(1, 2)}}))
		if got, err := collect(t.Context(), n.client(t, Config{}), ReadOptions{}, 0); err != nil || len(got) != 1 {
			t.Errorf("anywhere: %v: %v", got, err)
		}
		c := n.client(t, Config{})
		if got, err := collect(t.Context(), c, ReadOptions{Owner: true}, 0); err != nil || len(got) != 2 {
			t.Errorf("at the owner: %v: %v", got, err)
		}
		n.set("b", nil)
		if got, err := collect(t.Context(), c, ReadOptions{Owner: true}, 0); err != nil || len(got) != 1 {
			t.Errorf("without the owner: %v: %v", got, err)
		}
		if a := n.asked(); !slices.Equal(a, []string{"a", "a", "b", "b", "a", "b", "a"}) {
			t.Errorf("%q", a)
		}
		n.done.Wait()
	})
}

// TestPull: an answer that is cut is asked for again from the cursor, and each row comes once.
func TestPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hosts{}
		n.set("a", steps(t,
			notOwner("http://b")))
		n.set("b", steps(t,
			answerWith{lines: []string{tokenLine(1, 1, 1), tokenLine(1, 1, 2)}, end: cutOff},
			answerWith{lines: []string{tokenLine(1, 1, 1), tokenLine(1, 1, 2), tokenLine(1, 1, 3)}},
			answering(200, nil, `{"shard":4,"name":"c","cursor":3,"lag":0}`),
			answering(404, nil, `{"status":404,"code":"no-such-consumer","title":"none"}`),
			aborted,
		))
		c := n.client(t, Config{})
		chain := segment.Chain{Epoch: 1, Shard: 4}
		var got []string
		for row, err := range c.Pull(t.Context(), chain, "c/1", 10) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, row.Position())
		}
		if !slices.Equal(got, []string{"e1.t1.1", "e1.t1.2", "e1.t1.3"}) {
			t.Errorf("%q", got)
		}
		if u := n.requests()[1].URL; u.EscapedPath() != "/v1/shards/4/consumers/c%2F1/pull" || u.RawQuery != "epoch=1&limit=10" {
			t.Error(u)
		}
		if k, err := c.Ack(t.Context(), chain, "c", got[2]); err != nil || k.Cursor != 3 {
			t.Errorf("%+v, %v", k, err)
		}
		if _, err := c.Consumer(t.Context(), chain, "c"); !errors.Is(err, ErrNoConsumer) {
			t.Error(err)
		}
		if err := c.RemoveConsumer(t.Context(), chain, "c"); !errors.Is(err, ErrUnknown) {
			t.Error(err) // sent once
		}
	})
}

// TestAckOfARowWithoutTerm: a row of a closed chain has EPOCH.SEQ; its seq is acknowledged there,
// and in no other epoch.
func TestAckOfARowWithoutTerm(t *testing.T) {
	n := &hosts{}
	body := ""
	n.set("a", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body) // in memory
		body = string(b)
		answering(200, nil, `{"cursor":5}`).ServeHTTP(w, r)
	}))
	c := n.client(t, Config{})
	for _, epoch := range []segment.Epoch{0, 1} {
		if k, err := c.Ack(t.Context(), segment.Chain{Epoch: epoch}, "c", "1.5"); err != nil || k.Cursor != 5 || body != `{"seq":5}` {
			t.Errorf("%+v, %v, %s", k, err, body)
		}
	}
	for _, r := range n.requests() {
		if r.URL.RawQuery != "epoch=1" {
			t.Error(r.URL)
		}
	}
	if _, err := c.Ack(t.Context(), segment.Chain{Epoch: 2}, "c", "1.5"); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}

// TestStreamPages: the list is asked for page by page, and must be in order.
func TestStreamPages(t *testing.T) {
	page := func(from, n int) string {
		var b strings.Builder
		for i := range n {
			_ = json.NewEncoder(&b).Encode(Stream{Name: fmt.Sprintf("s%05d", from+i), Last: Position{1, segment.Seq(i)}}) // a Builder takes all
		}
		return b.String()
	}
	n := &hosts{}
	n.set("a", steps(t, answering(200, nil, page(0, pageOfStreams)), answering(200, nil, page(pageOfStreams, 3)),
		answering(200, nil, page(7, 1)+page(6, 1)), answering(200, nil, page(7, 1)+problemLine(503, "catalog-unavailable", ""))))
	c := n.client(t, Config{})
	count := 0
	for s, err := range c.Streams(t.Context(), "s") {
		if err != nil || s.Name != fmt.Sprintf("s%05d", count) {
			t.Fatalf("%+v, %v", s, err)
		}
		count++
	}
	if q := n.requests()[1].URL.Query(); count != pageOfStreams+3 || q.Get("after") != "s00999" || q.Get("prefix") != "s" {
		t.Errorf("%d streams, %v", count, q)
	}
	for _, kind := range []error{ErrOrder, ErrUnavailable} {
		var last error
		for _, err := range c.Streams(t.Context(), "") {
			last = err
		}
		if !errors.Is(last, kind) {
			t.Error(last)
		}
	}
}
