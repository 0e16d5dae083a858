package httpapi

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

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
