package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/strandline/strandline/segment"
)

// row is a row as somebody read it.
type row struct {
	stream  string
	seq     segment.Seq
	payload string
}

// verdict is what became of a stream's rows.
type verdict struct {
	rows    int
	excused int // acknowledged as local on the disk that was deleted, and missing
	faults  []string
}

func (v *verdict) fault(format string, args ...any) {
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

// judge holds all rows of a stream, in the order in which they were read, against what was
// acknowledged: each row once and in order, each where it was acknowledged, and none missing
// that nothing excuses.
func (l *ledger) judge(stream string, read []row) *verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, v := l.streams[stream], &verdict{rows: len(read)}
	at := map[uint64]segment.Seq{}
	var last row
	next := uint64(0) // a row with a lower number was there already
	for _, r := range read {
		n, ok := rowsSent().Number(stream, r.payload)
		switch {
		case !ok || r.stream != stream:
			v.fault("damage: %s has bytes at seq %d that nobody sent: %.60q", stream, r.seq, r.payload)
			continue
		case r.seq <= last.seq:
			v.fault("disorder: %s shows seq %d behind %d", stream, r.seq, last.seq)
		case n < next:
			v.fault("twice or disorder: %s shows row %d at seq %d, behind row %d at seq %d", stream, n, r.seq, next-1, last.seq)
		}
		last, next, at[n] = r, n+1, r.seq
	}
	l.missing(s, v, at)
	return v
}

// missing looks for every acknowledged row. A disk that is lost takes an end of its term's
// rows, none out of their middle. Under mu.
func (l *ledger) missing(s *streamLog, v *verdict, at map[uint64]segment.Seq) {
	cut := map[segment.Term]segment.Seq{} // the first row of a term that is missing
	for _, b := range s.acked {
		for i := range b.rows {
			n, seq := b.n+uint64(i), b.seq+segment.Seq(i)
			stands, there := at[n]
			first, gone := cut[b.term]
			switch {
			case there && stands != seq:
				v.fault("disorder: row %d of %s was acknowledged at seq %d and stands at %d", n, s.name, seq, stands)
			case there && gone:
				v.fault("loss: row %d of %s (seq %d) is there, seq %d of the same term is not", n, s.name, seq, first)
			case !there && l.excused(s, b, seq):
				v.excused++
				if !gone {
					cut[b.term] = seq
				}
			case !there:
				v.fault("loss: row %d of %s is missing, acknowledged at seq %d of term %d (shared %v)", n, s.name, seq, b.term, b.shared)
			}
		}
	}
}

// same holds a second reading of the same rows against the first.
func same(who, stream string, got, want []row) (faults []string) {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return []string{fmt.Sprintf("loss: %s saw %d rows of %s, the bucket has %d; the first that it did not see is seq %d", who, len(got), stream, len(want), want[i].seq)}
		case i >= len(want):
			return []string{fmt.Sprintf("twice: %s saw %d rows of %s, the bucket has %d; the first beyond is seq %d: %.60q", who, len(got), stream, len(want), got[i].seq, got[i].payload)}
		case got[i] != want[i]:
			return []string{fmt.Sprintf("loss, twice or disorder: %s saw seq %d of %s (%.60q) where the bucket has seq %d (%.60q)", who, got[i].seq, stream, got[i].payload, want[i].seq, want[i].payload)}
		}
	}
	return nil
}

// decode reads the NDJSON that the command prints.
func decode(text string) (out []row, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var line struct {
			Stream  string
			Seq     segment.Seq
			Payload *string
			Base64  []byte          `json:"payload_base64"`
			Error   json.RawMessage `json:"error"`
		}
		err := d.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return out, err
		case line.Error != nil:
			return out, fmt.Errorf("a row's place has an error: %s", bytes.TrimSpace(line.Error))
		}
		r := row{line.Stream, line.Seq, string(line.Base64)}
		if line.Payload != nil {
			r.payload = *line.Payload
		}
		out = append(out, r)
	}
}
