package drive

import (
	"fmt"
	"iter"
	"strconv"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// event is a row with all that a reader sees of it. Equal events are equal rows.
type event struct {
	Stream  string
	Seq     segment.Seq
	Time    int64
	Txn     string
	Payload string
}

func (e event) String() string {
	return fmt.Sprintf("seq %d of %q, txn %q, %d bytes", e.Seq, e.Stream, e.Txn, len(e.Payload))
}

// makeEvents are the same in every run: event i belongs to one of the streams in turn.
func makeEvents(n int, streams []string) []event {
	out := make([]event, n)
	for i := range out {
		out[i] = event{
			Stream: streams[i%len(streams)], Time: 1_700_000_000_000_000_000 + int64(i)*1_000_003,
			Txn: fmt.Sprintf("txn-%06d", i), Payload: payload(i),
		}
	}
	return out
}

// payloadBytes is about what a payload has.
const payloadBytes = 104

// payload is some hundred bytes, of any value, none like another.
func payload(i int) string {
	b := fmt.Appendf(nil, "event %d ", i)
	x := uint64(i)*2654435761 + 88172645463325252
	for range 96 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b = append(b, byte(x))
	}
	return string(b)
}

func (e *event) row() segment.Row {
	return segment.Row{Time: e.Time, Txn: []byte(e.Txn), Payload: []byte(e.Payload)}
}

func eventOf(stream string, r *segment.Row) event {
	return event{Stream: stream, Seq: r.Seq, Time: r.Time, Txn: string(r.Txn), Payload: string(r.Payload)}
}

// executions are snowflake ids, as seed 000's are, one after another until each shard
// has `each` of them.
func executions(shards uint32, each int) []string {
	var out []string
	left := make([]int, shards)
	for i := range left {
		left[i] = each
	}
	for id := int64(7_041_234_567_890_000_001); len(out) < int(shards)*each; id++ {
		name := strconv.FormatInt(id, 10)
		if s := segment.ShardOf(name, shards); left[s] > 0 {
			left[s]--
			out = append(out, name)
		}
	}
	return out
}

// onShard are the streams that belong to a shard.
func onShard(streams []string, shards uint32, s segment.Shard) (out []string) {
	for _, name := range streams {
		if segment.ShardOf(name, shards) == s {
			out = append(out, name)
		}
	}
	return out
}

// The readers' rows, as events.

func localRows(rows iter.Seq2[localtier.ShardRow, error]) (out []event, err error) {
	for r, err := range rows {
		if err != nil {
			return out, err
		}
		out = append(out, eventOf(r.Stream, &r.Row))
	}
	return out, nil
}

func streamRows(stream string, rows iter.Seq2[segment.Row, error]) (out []event, err error) {
	for r, err := range rows {
		if err != nil {
			return out, err
		}
		out = append(out, eventOf(stream, &r))
	}
	return out, nil
}

func coldRows(stream string, rows iter.Seq2[coldload.Row, error]) (out []event, err error) {
	for r, err := range rows {
		if err != nil {
			return out, err
		}
		out = append(out, eventOf(stream, &r.Row))
	}
	return out, nil
}

func scanRows(rows iter.Seq2[coldload.ShardRow, error]) (out []event, err error) {
	for r, err := range rows {
		if err != nil {
			return out, err
		}
		out = append(out, eventOf(r.Stream, &r.Row))
	}
	return out, nil
}

// The judgements that drives share. Nothing read back is never as it should be.

// same holds what was read back against what must be there, row for row.
func same(what string, want, got []event) error {
	if len(want) == 0 {
		return fmt.Errorf("%s: nothing was acknowledged to compare with", what)
	}
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Errorf("%s: row %d is %s, acknowledged was %s", what, i, got[i], want[i])
		}
	}
	if len(want) != len(got) {
		return fmt.Errorf("%s: %d rows, acknowledged were %d", what, len(got), len(want))
	}
	return nil
}

// gapless demands consecutive seqs from first to last.
func gapless(what string, rows []event, first, last segment.Seq) error {
	if len(rows) == 0 || first == 0 || last < first {
		return fmt.Errorf("%s: nothing was read of seqs %d to %d", what, first, last)
	}
	for i, r := range rows {
		if want := first + segment.Seq(i); r.Seq != want {
			return fmt.Errorf("%s: seq %d stands where %d must", what, r.Seq, want)
		}
	}
	if end := rows[len(rows)-1].Seq; end != last {
		return fmt.Errorf("%s: ends with seq %d, not %d", what, end, last)
	}
	return nil
}

// ofStream keeps a stream's rows.
func ofStream(rows []event, stream string) (out []event) {
	for _, r := range rows {
		if r.Stream == stream {
			out = append(out, r)
		}
	}
	return out
}

// from keeps the rows from a seq on.
func from(rows []event, seq segment.Seq) (out []event) {
	for _, r := range rows {
		if r.Seq >= seq {
			out = append(out, r)
		}
	}
	return out
}
