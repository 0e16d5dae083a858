package otlp

import (
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/strandline/strandline/segment"
)

const (
	// partBytes cuts a stream's rows into appends: an idempotent append is one frame.
	partBytes = 8 << 20
	// MaxRecordBytes is the largest record as a row, with its resource and scope: a frame
	// less the names and numbers around it.
	MaxRecordBytes = segment.MaxFrameBytes - 1<<10
	// rowOverhead is more than what a row takes in a frame beside its payload.
	rowOverhead = 32
)

// part is what one append takes: rows of one stream, in the request's order.
type part struct {
	rows  []segment.Row
	bytes int
	// timeless: a record without any time is in it, so that a second request with the
	// same bytes may well be a second event.
	timeless bool
}

// group is a stream's share of a request.
type group struct {
	stream string
	parts  []*part
}

// sorter turns a request into groups.
type sorter struct {
	attribute, dflt string
	largest         int // record, as a row
	now             time.Time

	groups   []*group // in order of their first record
	of       map[string]*group
	rejected rejected
}

// rejected counts the records that can never be taken, and says why of the first.
type rejected struct {
	records int
	why     string
}

func (r *rejected) add(n int, format string, args ...any) {
	if r.records == 0 {
		r.why = fmt.Sprintf(format, args...)
	}
	r.records += n
}

// rowsBytes bounds what a request's rows take.
func rowsBytes(logs plog.Logs) (total int) {
	var size plog.ProtoMarshaler
	for _, rl := range logs.ResourceLogs().All() {
		around := size.ResourceLogsSize(rl)
		for _, sl := range rl.ScopeLogs().All() {
			around -= size.ScopeLogsSize(sl) // what is left is the resource
		}
		for _, sl := range rl.ScopeLogs().All() {
			inner := size.ScopeLogsSize(sl)
			for _, r := range sl.LogRecords().All() {
				inner -= size.LogRecordSize(r)
			}
			n := sl.LogRecords().Len()
			total += size.ScopeLogsSize(sl) + n*(max(around, 0)+max(inner-2*n, 0)+rowOverhead)
			if total > MaxRowsBytes {
				return total
			}
		}
	}
	return total
}

// sort takes the request apart: its parts move into the rows' shells, and it is of no use
// afterwards.
func (s *sorter) sort(logs plog.Logs) error {
	for _, rl := range logs.ResourceLogs().All() {
		shell := plog.NewLogs()
		to := shell.ResourceLogs().AppendEmpty()
		byResource := s.name(rl.Resource().Attributes())
		rl.Resource().MoveTo(to.Resource())
		to.SetSchemaUrl(rl.SchemaUrl())
		for _, sl := range rl.ScopeLogs().All() {
			if err := s.sortScope(shell, sl, byResource); err != nil {
				return err
			}
		}
	}
	return nil
}

// sortScope makes a row of each record of a scope, in a shell that holds the resource.
func (s *sorter) sortScope(shell plog.Logs, sl plog.ScopeLogs, byResource string) error {
	scopes := shell.ResourceLogs().At(0).ScopeLogs()
	scopes.RemoveIf(func(plog.ScopeLogs) bool { return true })
	to := scopes.AppendEmpty()
	stream := byResource
	if stream == "" {
		stream = s.name(sl.Scope().Attributes())
	}
	sl.Scope().MoveTo(to.Scope())
	to.SetSchemaUrl(sl.SchemaUrl())
	one, out := to.LogRecords().AppendEmpty(), plogotlp.NewExportRequestFromLogs(shell)
	for _, r := range sl.LogRecords().All() {
		of := stream
		if of == "" {
			of = s.name(r.Attributes())
		}
		if of == "" {
			of = s.dflt
		}
		at, timed := timeOf(r, s.now)
		r.MoveTo(one)
		payload, err := out.MarshalProto()
		if err != nil {
			return fmt.Errorf("write a record as a row: %w", err)
		}
		s.add(of, segment.Row{Time: at, Payload: payload}, timed)
	}
	return nil
}

// name is the stream that attributes name; "" if they do not.
func (s *sorter) name(attributes pcommon.Map) string {
	v, ok := attributes.Get(s.attribute)
	if !ok {
		return ""
	}
	return StreamName(v.AsString())
}

// timeOf is a record's own time, else when it was observed, else now.
func timeOf(r plog.LogRecord, now time.Time) (at int64, own bool) {
	for _, t := range []pcommon.Timestamp{r.Timestamp(), r.ObservedTimestamp()} {
		if t > 0 && t <= math.MaxInt64 { // a row's time ends in 2262
			return int64(t), true
		}
	}
	return now.UnixNano(), r.Timestamp() != 0 || r.ObservedTimestamp() != 0
}

func (s *sorter) add(stream string, row segment.Row, timed bool) {
	if len(row.Payload) > s.largest {
		s.rejected.add(1, "a record of stream %q has %d bytes with its resource and scope, at most %d", stream, len(row.Payload), s.largest)
		return
	}
	g := s.of[stream]
	if g == nil {
		g = &group{stream: stream, parts: []*part{{}}}
		s.of[stream] = g
		s.groups = append(s.groups, g)
	}
	p := g.parts[len(g.parts)-1]
	if n := len(row.Payload) + rowOverhead; p.bytes > 0 && p.bytes+n > partBytes {
		p = &part{}
		g.parts = append(g.parts, p)
	}
	p.rows = append(p.rows, row)
	p.bytes += len(row.Payload) + rowOverhead
	p.timeless = p.timeless || !timed
}
