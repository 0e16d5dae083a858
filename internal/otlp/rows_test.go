package otlp

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/strandline/strandline/segment"
)

// rich has every field that a record, its scope and its resource know.
func rich() plog.Logs {
	logs := batch(2, "a")
	rl := logs.ResourceLogs().At(0)
	rl.Resource().SetDroppedAttributesCount(3)
	rl.Resource().Attributes().PutEmptyMap("m").PutEmptySlice("s").AppendEmpty().SetDouble(1.5)
	sl := rl.ScopeLogs().At(0)
	sl.Scope().Attributes().PutBool("b", true)
	sl.Scope().SetDroppedAttributesCount(4)
	r := sl.LogRecords().At(0)
	r.SetObservedTimestamp(77)
	r.SetSeverityNumber(plog.SeverityNumberError2)
	r.SetSeverityText("ERR")
	r.SetTraceID(pcommon.TraceID{1, 2, 3})
	r.SetSpanID(pcommon.SpanID{4, 5})
	r.SetFlags(plog.DefaultLogRecordFlags.WithIsSampled(true))
	r.SetDroppedAttributesCount(5)
	r.SetEventName("ev")
	r.Attributes().PutEmptyBytes("raw").FromRaw([]byte{0xff, 0})
	r.Body().SetEmptyMap().PutStr("k", "v")
	return logs
}

// TestLossless: the rows, put together again, are the request.
func TestLossless(t *testing.T) {
	l := newLog()
	want := rich()
	if w := post(receiver(t, l, nil), asProtobuf, protobuf(t, want)); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	for i, row := range l.rows["a"] {
		one := plog.NewLogs()
		want.CopyTo(one)
		n := -1
		one.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().RemoveIf(func(plog.LogRecord) bool { n++; return n != i })
		if got := string(protobuf(t, readRow(t, row))); got != string(protobuf(t, one)) {
			t.Errorf("row %d is not the record:\n%s\n%s", i, inJSON(t, readRow(t, row)), inJSON(t, one))
		}
		if string(row.Payload) != string(protobuf(t, one)) {
			t.Errorf("row %d has other bytes than the collector's own", i)
		}
	}
	if len(l.rows["a"]) != 2 {
		t.Errorf("%d rows", len(l.rows["a"]))
	}
}

// TestStreams: the attribute counts of the resource, else the scope, else the record.
func TestStreams(t *testing.T) {
	logs := plog.NewLogs()
	add := func(resource, scope, record, text string) {
		rl := logs.ResourceLogs().AppendEmpty()
		sl := rl.ScopeLogs().AppendEmpty()
		r := sl.LogRecords().AppendEmpty()
		r.SetTimestamp(1)
		r.Body().SetStr(text)
		for _, x := range []struct {
			to    pcommon.Map
			value string
		}{{rl.Resource().Attributes(), resource}, {sl.Scope().Attributes(), scope}, {r.Attributes(), record}} {
			if x.value != "" {
				x.to.PutStr("tenant", x.value)
			}
		}
	}
	add("r", "s", "l", "1")
	add("", "s", "l", "2")
	add("", "", "l", "3")
	add("", "", "", "4")
	add("r", "", "", "5")
	add("~audit/0", "", "", "6")
	logs.ResourceLogs().At(1).Resource().Attributes().PutStr("tenant", "") // as if it were not there
	number := logs.ResourceLogs().AppendEmpty()
	number.Resource().Attributes().PutInt("tenant", 42)
	number.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("7")

	l := newLog()
	r := receiver(t, l, func(d *Deps) { d.Attribute, d.Stream = "tenant", "rest" })
	if w := post(r, asProtobuf, protobuf(t, logs)); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	for stream, want := range map[string]string{"r": "[1 5]", "s": "[2]", "l": "[3]", "rest": "[4]", StreamName("~audit/0"): "[6]", "42": "[7]"} {
		if got := fmt.Sprint(l.bodies(t, stream)); got != want {
			t.Errorf("%s: %s, want %s", stream, got, want)
		}
	}
	if len(l.calls) != 6 {
		t.Errorf("%d appends of 6 streams", len(l.calls))
	}
}

func TestStreamName(t *testing.T) {
	long := strings.Repeat("ä", 150)
	names := map[string]bool{}
	for _, value := range []string{"", "a", strings.Repeat("a", 200), "~", "~audit/0", long, long + "b", "\xff", "\xfe", strings.Repeat("\xff", 300), "a/b c%"} {
		name := StreamName(value)
		legal := value == "" || segment.CheckStream(value) == nil
		if legal != (name == value) {
			t.Errorf("%q became %q", value, name)
		}
		if value != "" && segment.CheckStream(name) != nil {
			t.Errorf("%q became %q, which is no stream", value, name)
		}
		if names[name] {
			t.Errorf("%q has the name of another", value)
		}
		names[name] = true
	}
	// Rows stand under it: it never changes.
	if got, want := StreamName("~x"), "otlp:~x:52fa21738cf5adae"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTimes: a row's time is the record's own, else when it was observed, else now.
func TestTimes(t *testing.T) {
	for _, x := range []struct {
		own, observed pcommon.Timestamp
		want          int64
		timed         bool
	}{
		{5, 6, 5, true},
		{0, 6, 6, true},
		{0, 0, now.UnixNano(), false},
		{math.MaxInt64, 6, math.MaxInt64, true},
		{math.MaxInt64 + 1, 6, 6, true},
		{math.MaxUint64, 0, now.UnixNano(), true},
	} {
		r := plog.NewLogRecord()
		r.SetTimestamp(x.own)
		r.SetObservedTimestamp(x.observed)
		if at, timed := timeOf(r, now); at != x.want || timed != x.timed {
			t.Errorf("%d, %d: %d %t, want %d %t", x.own, x.observed, at, timed, x.want, x.timed)
		}
	}
}

// TestTooLargeRecord: it alone is rejected.
func TestTooLargeRecord(t *testing.T) {
	logs := batch(3, "a")
	logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(1).Body().SetStr(strings.Repeat("x", 1000))
	l := newLog()
	r := receiver(t, l, nil)
	r.largest = 1000
	w := post(r, asProtobuf, protobuf(t, logs))
	no := rejectedOf(t, asProtobuf, w.Body.Bytes())
	if w.Code != http.StatusOK || no.RejectedLogRecords() != 1 || !strings.Contains(no.ErrorMessage(), "at most 1000") {
		t.Fatal(w.Code, no.RejectedLogRecords(), no.ErrorMessage())
	}
	if got := fmt.Sprint(l.bodies(t, "a")); got != "[a-0 a-2]" {
		t.Error(got)
	}
}

// TestParts: a stream's rows that no one append may hold go in several, in order; a row
// of the largest size fits a frame.
func TestParts(t *testing.T) {
	logs := batch(5, "a")
	records := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	for i := range 5 {
		records.At(i).Attributes().PutStr("pad", strings.Repeat("x", partBytes/3))
	}
	l := newLog()
	if w := post(receiver(t, l, nil), asProtobuf, protobuf(t, logs)); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	if len(l.calls) != 3 || fmt.Sprint(l.bodies(t, "a")) != "[a-0 a-1 a-2 a-3 a-4]" {
		t.Errorf("%d appends: %v", len(l.calls), l.bodies(t, "a"))
	}
	row := segment.Row{Time: math.MinInt64, Payload: make([]byte, MaxRecordBytes)}
	b := segment.Batch{First: math.MaxInt64, Stream: strings.Repeat("s", segment.MaxStreamName), Rows: []segment.Row{row}, Producer: strings.Repeat("p", segment.MaxProducerName), Sequence: math.MaxUint64}
	if n := segment.BatchBytes(&b); n > segment.MaxFrameBytes {
		t.Errorf("the largest record makes a frame of %d bytes, at most %d", n, segment.MaxFrameBytes)
	}
}

// TestRowsBytes: what is reserved for a request's rows is no less than what they take.
func TestRowsBytes(t *testing.T) {
	for _, logs := range []plog.Logs{rich(), batch(1, "a"), batch(300, "a", "b"), plog.NewLogs()} {
		bound := rowsBytes(logs)
		s := &sorter{attribute: DefaultAttribute, dflt: "x", largest: MaxRecordBytes, now: now, of: map[string]*group{}}
		if err := s.sort(logs); err != nil {
			t.Fatal(err)
		}
		took := 0
		for _, g := range s.groups {
			for _, p := range g.parts {
				for _, row := range p.rows {
					took += len(row.Payload)
				}
			}
		}
		if took > bound {
			t.Errorf("%d bytes of rows, %d were reserved", took, bound)
		}
	}
}
