package httpapi

import (
	"bytes"
	"encoding/json"
	"net/url"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/segment"
)

// FuzzLine: what a line is taken for is what its row reads back as.
func FuzzLine(f *testing.F) {
	for _, s := range []string{
		`{"payload":"a"}`, `{"payload_base64":"/wA="}`, `{"payload":"\ud83d\ude00","ts":"2026-01-02T03:04:05.6Z","txn":"t"}`,
		`{"payload":"\ud83d"}`, `{"payload":"\ufffd"}`, `{"payload":"a"}x`, ``, `null`, `{}`, `{"payload":"a","ts":"9999-01-01T00:00:00Z"}`,
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
		if !bytes.Equal(payload, row.Payload) || l.Txn != string(row.Txn) || l.Time.UnixNano() != row.Time || !utf8.Valid(row.Txn) {
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
		rows, err := parseRows(kind, body, time.Unix(1, 0))
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
	for _, q := range []string{"", "from=1&to=2&limit=3", "from=0", "from=2&to=1", "limit=-1", "from=18446744073709551615"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		s := &server{Deps: Deps{Epoch: 7}}
		from, to, limit, err := s.bounds(q)
		if err != nil {
			return
		}
		for name, p := range map[string]segment.Pos{"from": from, "to": to} {
			if given := q.Get(name) != ""; given != (p != segment.Pos{}) || given && (p.Epoch != 7 || p.Seq == 0) {
				t.Fatalf("%q: %s is %s", query, name, p)
			}
		}
		if limit < 1 || to != (segment.Pos{}) && to.Less(from) {
			t.Fatalf("%q: %s to %s, %d", query, from, to, limit)
		}
	})
}
