package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/segment"
)

// FuzzLine: what a line is taken for is what its row reads back as.
func FuzzLine(f *testing.F) {
	for _, s := range []string{
		`{"payload":"a"}`, `{"payload_base64":"/wA="}`, `{"payload":"\ud83d\ude00","ts":"2026-01-02T03:04:05.6Z","txn":"t"}`,
		`{"payload":"\ud83d"}`, `{"payload":"\ufffd"}`, `{"payload":"a"}x`, ``, `null`, `{}`, `{"payload":"a","txn_base64":"/w=="}`, `{"payload":"a","ts":"9999-01-01T00:00:00Z"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var row segment.Row
		if decodeLine(line, &row) != nil {
			return
		}
		out, err := json.Marshal(LineOf("s", &coldload.Row{Row: row}))
		if err != nil {
			t.Fatal(err)
		}
		var l Line
		if err := json.Unmarshal(out, &l); err != nil {
			t.Fatal(err)
		}
		payload := l.Base64
		if l.Payload != nil {
			payload = []byte(*l.Payload)
		}
		if !bytes.Equal(payload, row.Payload) || l.Txn+string(l.TxnB64) != string(row.Txn) || l.Time.UnixNano() != row.Time {
			t.Fatalf("%q became %+v, which reads %s", line, row, out)
		}
	})
}

// FuzzBody: a body has as many rows as lines, or is refused.
func FuzzBody(f *testing.F) {
	f.Add([]byte("a\nb\n"), true)
	f.Add([]byte("{\"payload\":\"a\"}\n"), false)
	f.Fuzz(func(t *testing.T, body []byte, raw bool) {
		kind := ""
		if !raw {
			kind = ndjson
		}
		given := bytes.Clone(body) // rows may change it
		rows, err := rowsOf(kind, given, &room{of: semaphore.NewWeighted(1 << 40)})
		if err != nil {
			if len(rows) > 0 {
				t.Fatal("rows beside an error")
			}
			return
		}
		if raw {
			var back []byte
			for _, r := range rows {
				back = append(append(back, r.Payload...), '\n')
			}
			if string(bytes.TrimSuffix(back, []byte{'\n'})) != string(bytes.TrimSuffix(body, []byte{'\n'})) {
				t.Fatalf("%q became %q", body, back)
			}
		}
	})
}

// FuzzPositions: a query is refused or means what it says.
func FuzzPositions(f *testing.F) {
	for _, q := range []string{
		"", "from=1&to=2&limit=3", "from=0", "from=2&to=1", "limit=-1", "from=18446744073709551615", "after=18446744073709551615",
		"after=7", "from=e3.t2.9", "after=e3.t2.0", "to=e3.t2.9",
	} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		b, err := boundsOf(q, 7)
		if err != nil {
			return
		}
		begin := q.Get("from") + q.Get("after")
		for text, p := range map[string]segment.Pos{begin: b.from, q.Get("to"): b.to} {
			if given := text != ""; given != (p != segment.Pos{}) || given && p.Seq == 0 || given && text[0] != 'e' && p.Epoch != 7 {
				t.Fatalf("%q: %q is %s", query, text, p)
			}
		}
		if (b.token != nil) != strings.HasPrefix(begin, "e") || b.token != nil && b.token.String() != begin {
			t.Fatalf("%q: token %v", query, b.token)
		}
		if b.limit < 1 {
			t.Fatalf("%q: limit %d", query, b.limit)
		}
	})
}

// FuzzPlainLine: what plainLine takes, decodeLine takes for the same; what it does not
// take, it leaves as it was.
func FuzzPlainLine(f *testing.F) {
	for _, s := range []string{
		`{"payload":"a"}`, `{ "payload" : "a\nb\u00e4\/" , "ts":"2026-01-02T03:04:05.6+01:00", "txn":"t" } `, `{"payload_base64":"/wA=","txn_base64":"/w=="}`,
		`{"payload":"a","payload":"b"}`, `{"Payload":"a"}`, `{"payload":"\ud83d\ude00"}`, `{"payload":"a",}`, `{"payload":"a"}x`, `{"payload":null}`, `{"payload":"a","ts":"1677-09-21T00:12:43.145224192Z"}`,
		`{"payload_base64":"*"}`, "{\"payload\":\"\x01\"}", `{"payload":"\u12"}`, `{"payload":"\x"}`, `{"payload":"a","ts":"x"}`, `{}`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') >= 0 {
			return // no line
		}
		want := segment.Row{Time: noTime}
		err := decodeLine(bytes.Clone(line), &want)
		got, given := segment.Row{Time: noTime}, bytes.Clone(line)
		if !plainLine(given, &got) {
			if !bytes.Equal(given, line) || got.Time != noTime || got.Payload != nil || got.Txn != nil {
				t.Fatalf("%q was refused, and is %q and %+v now", line, given, got)
			}
			return
		}
		if err != nil {
			t.Fatalf("%q is taken for %+v, and is refused: %v", line, got, err)
		}
		if !bytes.Equal(got.Payload, want.Payload) || !bytes.Equal(got.Txn, want.Txn) || got.Time != want.Time {
			t.Fatalf("%q: %+v, want %+v", line, got, want)
		}
	})
}

// FuzzAppendLine: a row is sent as encoding/json would have it.
func FuzzAppendLine(f *testing.F) {
	f.Add("s", []byte("a\n<&>\u2028\u2029\x00\xff"), []byte("t"), int64(0), uint64(1), "")
	f.Add("\u00e4\"", []byte("\xe2\x80"), []byte("\xff"), int64(-1), uint64(1<<63), "e1.t2.3")
	f.Fuzz(func(t *testing.T, stream string, payload, txn []byte, ts int64, seq uint64, token string) {
		if !utf8.ValidString(stream) || strings.ContainsAny(token, "\"\\<>&") || !utf8.ValidString(token) || strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r > '~' }) {
			return // names are UTF-8, tokens are ours
		}
		row := segment.Row{Seq: segment.Seq(seq), Time: ts, Payload: payload, Txn: txn}
		l := LineOf(stream, &coldload.Row{Epoch: 3, Row: row})
		l.Token = token
		var want bytes.Buffer
		if err := json.NewEncoder(&want).Encode(l); err != nil {
			t.Fatal(err)
		}
		if got := appendLine(nil, &coldload.ShardRow{Stream: stream, Epoch: 3, Row: row}, token); !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("%s, want %s", got, want.Bytes())
		}
	})
}

// FuzzRequest: whatever is asked, the answer is one, and problems are problems.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		"/v1/streams/s/rows?from=1", "/v1/streams/%2F/rows", "/v1/streams/..%2F../trim", "/v1/shards/0/consumers/c/ack?epoch=1", "/v1/streams/%00/rows?follow=x", "/%zz", "/v1//status",
		"/v1/streams?prefix=a&limit=5", "/v1/shards/99999999999/rows", "/v1/explain?key=x",
	} {
		f.Add("GET", s, "application/json", "gzip", "a", []byte(`{"below":"e1.t1.1"}`))
		f.Add("POST", s, "text/event-stream;q=0.5", "zstd", "e1.t1.1", []byte("\x28\xb5\x2f\xfd"))
	}
	var got taken
	w := taking(&got)
	w.consumers = consumers{}
	b := &bucket{looks: [][]segment.Seq{{}}}
	s := newServer(Deps{Writer: w, Reader: b, Catalog: b, Epoch: 1, Shards: 1, Status: func(context.Context) (any, error) { return map[string]int{}, nil }})
	h := s.handler()
	f.Fuzz(func(t *testing.T, method, target, accept, coding, last string, body []byte) {
		if u, err := url.ParseRequestURI(target); err != nil || u.Path == "" || u.Host != "" || strings.Contains(u.RawQuery, "follow") || !validMethod(method) {
			return // net/http lets none of these through; what is followed has no end
		}
		r := httptest.NewRequest(method, "/", bytes.NewReader(body))
		r.URL, _ = url.ParseRequestURI(target)
		r.RequestURI = target
		r.Header["Accept"], r.Header["Content-Encoding"], r.Header[lastEventHeader] = []string{accept}, []string{coding}, []string{last}
		r.Header[idempotencyHeader] = []string{last}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code >= 400 {
			mustProblem(t, rec)
		}
		if rec.Code == http.StatusInternalServerError || rec.Header().Get(requestHeader) == "" {
			t.Fatalf("%s %s: %d %s", method, target, rec.Code, rec.Body)
		}
		if !s.Bodies.free.TryAcquire(MaxBodiesBytes) {
			t.Fatal("room is held")
		}
		s.Bodies.free.Release(MaxBodiesBytes)
	})
}

func validMethod(m string) bool {
	return m != "" && !strings.ContainsFunc(m, func(r rune) bool { return r < 'A' || r > 'Z' })
}
