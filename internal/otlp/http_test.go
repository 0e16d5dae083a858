package otlp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstded(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	return w.EncodeAll(b, nil)
}

// TestForms: the same logs in every form and encoding are the same rows, answered in
// the request's form.
func TestForms(t *testing.T) {
	logs := batch(3, "a")
	for _, x := range []struct {
		form, encoding string
		body           []byte
	}{
		{asProtobuf, "", protobuf(t, logs)},
		{asProtobuf, "identity", protobuf(t, logs)},
		{asProtobuf, "gzip", gzipped(t, protobuf(t, logs))},
		{asProtobuf, "zstd", zstded(t, protobuf(t, logs))},
		{asProtobuf, " GZIP", gzipped(t, protobuf(t, logs))},
		{asJSON, "", inJSON(t, logs)},
		{asJSON + "; charset=utf-8", "gzip", gzipped(t, inJSON(t, logs))},
		{asJSON, "zstd", zstded(t, inJSON(t, logs))},
	} {
		t.Run(x.form+x.encoding, func(t *testing.T) {
			l := newLog()
			var headers []string
			if x.encoding != "" {
				headers = []string{"Content-Encoding", x.encoding}
			}
			w := post(receiver(t, l, nil), x.form, x.body, headers...)
			form, _, _ := strings.Cut(x.form, ";")
			if w.Code != http.StatusOK || w.Header().Get("Content-Type") != form {
				t.Fatalf("%d %s %s", w.Code, w.Header(), w.Body)
			}
			if no := rejectedOf(t, form, w.Body.Bytes()); no.RejectedLogRecords() != 0 || no.ErrorMessage() != "" {
				t.Errorf("rejected %d: %s", no.RejectedLogRecords(), no.ErrorMessage())
			}
			if got := l.bodies(t, "a"); fmt.Sprint(got) != "[a-0 a-1 a-2]" {
				t.Error(got)
			}
		})
	}
}

func rejectedOf(t *testing.T, form string, body []byte) plogotlp.ExportPartialSuccess {
	t.Helper()
	out := plogotlp.NewExportResponse()
	err := out.UnmarshalProto(body)
	if form == asJSON {
		err = out.UnmarshalJSON(body)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.PartialSuccess()
}

// statusOf reads an error's body in its form.
func statusOf(t *testing.T, w *httptest.ResponseRecorder) *spb.Status {
	t.Helper()
	st := &spb.Status{}
	var err error
	switch w.Header().Get("Content-Type") {
	case asJSON:
		err = protojson.Unmarshal(w.Body.Bytes(), st)
	case asProtobuf:
		err = proto.Unmarshal(w.Body.Bytes(), st)
	default:
		t.Fatalf("content type %q", w.Header().Get("Content-Type"))
	}
	if err != nil || st.GetMessage() == "" {
		t.Fatalf("status %v: %v", st, err)
	}
	return st
}

func retryOf(st *spb.Status) time.Duration {
	for _, d := range st.GetDetails() {
		info := &errdetails.RetryInfo{}
		if d.UnmarshalTo(info) == nil {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// TestRefused: what is wrong with a request is said once, and nothing of it is written.
func TestRefused(t *testing.T) {
	good := protobuf(t, batch(2, "a"))
	deep := strings.Repeat(`{"arrayValue":{"values":[`, 200) + `{}` + strings.Repeat(`]}}`, 200)
	wide := plog.NewLogs() // 2,000 records of nothing under 64 KiB of resource
	rl := wide.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("blob", strings.Repeat("x", 64<<10))
	sl := rl.ScopeLogs().AppendEmpty()
	for range 2000 {
		sl.LogRecords().AppendEmpty()
	}
	for _, x := range []struct {
		name, form, encoding string
		body                 []byte
		code                 int
	}{
		{"no type", "", "", good, 415},
		{"text", "text/plain", "", good, 415},
		{"broken type", "application/", "", good, 415},
		{"unknown encoding", asProtobuf, "br", good, 415},
		{"two encodings", asProtobuf, "gzip, gzip", good, 415},
		{"cut protobuf", asProtobuf, "", good[:len(good)-1], 400},
		{"protobuf of something else", asProtobuf, "", []byte("\x0a\x03abc"), 400},
		{"no JSON", asJSON, "", []byte("hello"), 400},
		{"cut JSON", asJSON, "", []byte(`{"resourceLogs":[{"scopeLogs":[`), 400},
		{"deep JSON", asJSON, "", []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":` + deep + `}]}]}]}`), 400},
		{"deeper JSON", asJSON, "", bytes.Repeat([]byte(`{"arrayValue":{"values":[`), 300_000), 400},
		{"deep protobuf", asProtobuf, "", deepRequest(150), 400},
		{"no gzip", asProtobuf, "gzip", good, 400},
		{"cut gzip", asProtobuf, "gzip", gzipped(t, good)[:20], 400},
		{"no zstd", asProtobuf, "zstd", good, 400},
		{"large", asProtobuf, "", make([]byte, MaxBodyBytes+1), 413},
		{"gzip bomb", asProtobuf, "gzip", gzipped(t, make([]byte, 4*MaxBodyBytes)), 413},
		{"zstd bomb", asProtobuf, "zstd", zstded(t, make([]byte, 4*MaxBodyBytes)), 413},
		{"JSON bomb", asJSON, "gzip", gzipped(t, bytes.Repeat([]byte("{},"), MaxBodyBytes/3)), 413},
		{"many records", asProtobuf, "", manyRecords(MaxRecords + 1), 413},
		{"wide", asProtobuf, "", protobuf(t, wide), 413},
	} {
		t.Run(x.name, func(t *testing.T) {
			l := newLog()
			var headers []string
			if x.encoding != "" {
				headers = []string{"Content-Encoding", x.encoding}
			}
			w := post(receiver(t, l, nil), x.form, x.body, headers...)
			if w.Code != x.code || len(l.calls) > 0 {
				t.Fatalf("%d, want %d; %d appends; %s", w.Code, x.code, len(l.calls), w.Body)
			}
			if st := statusOf(t, w); codes.Code(st.GetCode()) != codes.InvalidArgument || retryOf(st) != 0 || w.Header().Get("Retry-After") != "" {
				t.Errorf("%v %v: as if it were to be sent again", st, w.Header())
			}
		})
	}
}

// TestUnknownLength: a body that says nothing of its length is bounded, too.
func TestUnknownLength(t *testing.T) {
	r := receiver(t, newLog(), nil)
	for _, x := range []struct {
		size, code int
	}{{100 << 10, 400}, {MaxBodyBytes, 400}, {MaxBodyBytes + 1, 413}} {
		req := httptest.NewRequest(http.MethodPost, "/v1/logs", io.MultiReader(bytes.NewReader(make([]byte, x.size))))
		req.Header.Set("Content-Type", asProtobuf)
		w := httptest.NewRecorder()
		if r.ServeHTTP(w, req); w.Code != x.code {
			t.Errorf("%d bytes: %d, want %d", x.size, w.Code, x.code)
		}
	}
}

func TestMethod(t *testing.T) {
	w := httptest.NewRecorder()
	receiver(t, newLog(), nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/logs", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Error(w.Code, w.Header())
	}
}

// TestEmpty: a request without records has nothing to make durable.
func TestEmpty(t *testing.T) {
	l := newLog()
	for _, w := range []*httptest.ResponseRecorder{post(receiver(t, l, nil), asProtobuf, nil), post(receiver(t, l, nil), asJSON, []byte("{}"))} {
		if w.Code != http.StatusOK || len(l.calls) != 0 {
			t.Error(w.Code, w.Body)
		}
	}
}

// TestSurveyJSON: brackets in a text are no nesting; those outside are, whoever is to read them.
func TestSurveyJSON(t *testing.T) {
	if n, err := surveyJSON([]byte(`{"a":"` + strings.Repeat(`[{\"`, 1000) + `","b":[{},{}]}`)); err != nil || n != 4 {
		t.Errorf("%d objects and lists, %v", n, err)
	}
	for depth, deep := range map[int]bool{3 * maxDepth: false, 3*maxDepth + 1: true} {
		if _, err := surveyJSON(bytes.Repeat([]byte("["), depth)); (err != nil) != deep {
			t.Errorf("%d levels: %v", depth, err)
		}
	}
}

// deepRequest has one record whose body is n arrays, each in the other.
func deepRequest(n int) []byte {
	field := func(tag byte, b []byte) []byte {
		return append(append([]byte{tag}, varint(len(b))...), b...)
	}
	var value []byte
	for range n {
		value = field(0x2a, field(0x0a, value)) // AnyValue.array_value{values}
	}
	return field(0x0a, field(0x12, field(0x12, field(0x2a, value))))
}

// manyRecords is n empty records in one scope.
func manyRecords(n int) []byte {
	scope := bytes.Repeat([]byte{0x12, 0}, n)
	res := append(append([]byte{0x12}, varint(len(scope))...), scope...)
	return append(append([]byte{0x0a}, varint(len(res))...), res...)
}

func varint(n int) (out []byte) {
	for ; n >= 0x80; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(out, byte(n))
}

// TestVerdicts: what an append ends in, as both protocols say it.
func TestVerdicts(t *testing.T) {
	pressure := &localtier.BackpressureError{Reason: "full", RetryAfter: 2500 * time.Millisecond}
	for _, x := range []struct {
		err   error
		http  int
		code  codes.Code
		retry string
	}{
		{pressure, 429, codes.ResourceExhausted, "3"},
		{&localtier.BackpressureError{Full: true, RetryAfter: 5 * time.Second}, 429, codes.ResourceExhausted, "5"},
		{fmt.Errorf("append: %w", wal.ErrBackpressure), 429, codes.ResourceExhausted, "1"},
		{&LaterError{After: 7 * time.Second, Slow: true, Err: errors.New("forwarded")}, 429, codes.ResourceExhausted, "7"},
		{&LaterError{After: 7 * time.Second, Err: errors.New("forwarded")}, 503, codes.Unavailable, "7"},
		{&localtier.EpochError{Epoch: 1, RetryAfter: 5 * time.Second}, 503, codes.Unavailable, "5"},
		{&localtier.NotOwnerError{Stream: "a"}, 503, codes.Unavailable, "1"},
		{localtier.ErrFenced, 503, codes.Unavailable, "1"},
		{localtier.ErrLeaseLost, 503, codes.Unavailable, "1"},
		{localtier.ErrHalted, 503, codes.Unavailable, "1"},
		{localtier.ErrClosed, 503, codes.Unavailable, "1"},
		{wal.ErrPoisoned, 503, codes.Unavailable, "1"},
		{&localtier.SequenceError{Others: true}, 503, codes.Unavailable, "1"},
		{errors.New("who knows"), 503, codes.Unavailable, "1"},
	} {
		for _, form := range []string{asProtobuf, asJSON} {
			l := newLog()
			l.fail = func(Batch) error { return x.err }
			body := protobuf(t, batch(2, "a", "b"))
			if form == asJSON {
				body = inJSON(t, batch(2, "a", "b"))
			}
			w := post(receiver(t, l, nil), form, body)
			st := statusOf(t, w)
			if w.Code != x.http || codes.Code(st.GetCode()) != x.code || w.Header().Get("Retry-After") != x.retry || retryOf(st) < time.Second {
				t.Errorf("%v: %d %v Retry-After %s, RetryInfo %v", x.err, w.Code, codes.Code(st.GetCode()), w.Header().Get("Retry-After"), retryOf(st))
			}
		}
	}
}

// TestNever: rows that can never be taken are counted, and the others are written.
func TestNever(t *testing.T) {
	for _, kind := range []error{ErrNever, segment.ErrName, segment.ErrTooLarge, localtier.ErrTooLarge, localtier.ErrInvalid} {
		l := newLog()
		l.fail = func(b Batch) error {
			if b.Stream == "bad" {
				return fmt.Errorf("append: %w", kind)
			}
			return nil
		}
		w := post(receiver(t, l, nil), asProtobuf, protobuf(t, batch(3, "bad", "good")))
		no := rejectedOf(t, asProtobuf, w.Body.Bytes())
		if w.Code != http.StatusOK || no.RejectedLogRecords() != 3 || !strings.Contains(no.ErrorMessage(), kind.Error()) {
			t.Errorf("%v: %d, %d rejected: %s", kind, w.Code, no.RejectedLogRecords(), no.ErrorMessage())
		}
		if len(l.rows["good"]) != 3 {
			t.Errorf("%v: %d good rows", kind, len(l.rows["good"]))
		}
	}
}

// TestNeverBesideLater: a record that can never be taken is no success of the others.
func TestNeverBesideLater(t *testing.T) {
	l := newLog()
	l.fail = func(b Batch) error {
		return map[string]error{"bad": ErrNever, "away": localtier.ErrLeaseLost}[b.Stream]
	}
	r := receiver(t, l, nil)
	defer func() {
		post(r, asProtobuf, []byte("x"))
		post(r, asProtobuf, protobuf(t, batch(3, "good")))
		if got, want := r.Counts(), (Counts{Taken: 1, Partial: 1, Refused: 1, Later: 1, Records: 7, Rejected: 2}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}()
	body := protobuf(t, batch(2, "bad", "away", "good"))
	if w := post(r, asProtobuf, body); w.Code != http.StatusServiceUnavailable {
		t.Fatal(w.Code, w.Body)
	}
	l.fail = func(b Batch) error { return map[string]error{"bad": ErrNever}[b.Stream] }
	w := post(r, asProtobuf, body)
	if no := rejectedOf(t, asProtobuf, w.Body.Bytes()); w.Code != http.StatusOK || no.RejectedLogRecords() != 2 {
		t.Error(w.Code, no.RejectedLogRecords())
	}
	if len(l.rows["away"]) != 2 || len(l.rows["good"]) != 2 {
		t.Errorf("%d and %d rows", len(l.rows["away"]), len(l.rows["good"]))
	}
}
