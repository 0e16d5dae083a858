package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/strandline/strandline/segment"
)

// FuzzLines: whatever a server sends, rows come in order, and the end is one of the known.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"", "\n", lineOf(1, 2), lineOf(1, 2) + "\n" + tokenLine(1, 3, 4), lineOf(1, 2)[:20], problemLine(410, "trimmed", `,"first":3`), `{"error":null}` + "\n", `{"error":{}}` + "\n", `{"seq":1,"epoch":1,"token":"e1"}` + "\n"} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, owner bool) {
		a := &answer{header: http.Header{}, lines: io.NopCloser(bytes.NewReader(body)), cut: func() {}}
		if owner {
			a.header.Set(epochHeader, "1")
			a.header.Set(termHeader, "9")
		}
		var last segment.Pos
		r := &reading{yield: func(row Row, _ error) bool {
			if !last.Less(row.Pos()) || row.Seq == 0 {
				t.Fatalf("%v after %v", row.Pos(), last)
			}
			last = row.Pos()
			return true
		}}
		err := r.deliver(context.Background(), a)
		var p *Problem
		if err != nil && !errors.As(err, &p) && !errors.Is(err, ErrCut) && !errors.Is(err, ErrAnswer) && !errors.Is(err, ErrOrder) {
			t.Fatalf("%v", err)
		}
	})
}

// FuzzBody: a row comes back byte for byte.
func FuzzBody(f *testing.F) {
	f.Add([]byte("payload"), []byte("txn"), int64(1))
	f.Add([]byte("\x00\"\\\n\u2028\xff"), []byte("\ufffd"), int64(0))
	f.Fuzz(func(t *testing.T, payload, txn []byte, at int64) {
		row := segment.Row{Time: at, Txn: txn, Payload: payload}
		kind, raw := encodeRows(nil, []segment.Row{row}, true)
		back := decodeBody(t, kind, raw)
		if len(back) != 1 || !bytes.Equal(back[0].Payload, payload) || !bytes.Equal(back[0].Txn, txn) || back[0].Time != at {
			t.Fatalf("%+v from %q of %+v, %v", back, raw, row, time.Unix(0, at))
		}
	})
}
