package otlp

import (
	"net/http"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
)

// FuzzHTTP: any body in any form and encoding is refused, or taken whole: as many rows as it
// has records, and each reads back as one.
func FuzzHTTP(f *testing.F) {
	good := protobuf(f, rich())
	text := inJSON(f, rich())
	for _, seed := range [][]byte{nil, good, text, gzipped(f, good), zstded(f, good), gzipped(f, text), deepRequest(90), manyRecords(20), []byte("{}"), []byte(`{"resourceLogs":[{}]}`)} {
		for encoding := range byte(3) {
			f.Add(seed, true, encoding)
			f.Add(seed, false, encoding)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, json bool, encoding byte) {
		form := asProtobuf
		if json {
			form = asJSON
		}
		var headers []string
		if e := encoding % 3; e > 0 {
			headers = []string{"Content-Encoding", []string{"gzip", "zstd"}[e-1]}
		}
		l := newLog()
		w := post(receiver(t, l, nil), form, body, headers...)
		rows := 0
		for stream := range l.rows {
			rows += len(l.bodies(t, stream)) // fails on a row that is not one record
		}
		switch w.Code {
		case http.StatusOK:
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			if len(l.calls) > 0 {
				t.Fatalf("%d, and %d appends", w.Code, len(l.calls))
			}
			return
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if len(headers) > 0 {
			return
		}
		in := plogotlp.NewExportRequest()
		var err error
		if json {
			err = in.UnmarshalJSON(body)
		} else {
			err = in.UnmarshalProto(body)
		}
		if err != nil || in.Logs().LogRecordCount() != rows {
			t.Fatalf("%d rows of %d records, %v", rows, in.Logs().LogRecordCount(), err)
		}
	})
}

// FuzzSurvey: what is counted before a message is decoded is what it then holds.
func FuzzSurvey(f *testing.F) {
	f.Add(protobuf(f, rich()))
	f.Add(deepRequest(90))
	f.Add(manyRecords(20))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := survey(body)
		in := plogotlp.NewExportRequest()
		if in.UnmarshalProto(body) != nil || err != nil {
			return
		}
		if n := in.Logs().LogRecordCount(); n != c.records || c.elements < c.records {
			t.Fatalf("%d records counted as %d of %d", n, c.records, c.elements)
		}
	})
}
