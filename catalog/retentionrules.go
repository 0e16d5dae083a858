package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/strandline/strandline/segment"
)

// What a policy says by saying nothing.
const (
	DefaultSegmentBytes = 64 << 20
	DefaultMinSegments  = 2
)

// Keeps says whether the chains keep everything: mode keep, none, or one that this
// build does not know.
func (r Retention) Keeps() bool { return r.Mode != RetentionInterest }

// limited says whether any limit is set: without one only interest moves the boundary.
func (r *Retention) limited() bool {
	return r.Rows > 0 || r.Bytes > 0 || r.Age > 0 || r.Segments > 0
}

// fullSegments is n full-size segments in bytes.
func (r *Retention) fullSegments(n uint64) int64 {
	size := r.SegmentBytes
	if size <= 0 {
		size = DefaultSegmentBytes
	}
	if n > uint64(math.MaxInt64/size) {
		return math.MaxInt64
	}
	return int64(n) * size
}

// floor is what stays whatever the limits and the consumers say.
func (r *Retention) floor() int64 {
	n := r.MinSegments
	if n == 0 {
		n = DefaultMinSegments
	}
	return r.fullSegments(n)
}

// ValidateRetention checks a policy on its own.
func ValidateRetention(verb string, r *Retention) error {
	switch {
	case r.Mode != "" && r.Mode != RetentionKeep && r.Mode != RetentionInterest:
		return Invalid(verb, "retention mode %q; %q and %q may be", string(r.Mode), RetentionKeep, RetentionInterest)
	case r.Bytes < 0 || r.Age < 0 || r.SegmentBytes < 0:
		return Invalid(verb, "retention of %d bytes, age %v, segments of %d bytes", r.Bytes, r.Age, r.SegmentBytes)
	}
	return nil
}

// EncodeRetention is a policy as a catalog stores it.
func EncodeRetention(r Retention) (string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("retention: %w", err)
	}
	return string(b), nil
}

// DecodeRetention is the inverse of EncodeRetention. A field that this build does not
// know may hold something back that it cannot see, so the mode becomes one that keeps
// everything.
func DecodeRetention(s string) (r Retention, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(s)))
	d.DisallowUnknownFields()
	if d.Decode(&r) == nil {
		return r, nil
	}
	r = Retention{}
	if err := json.Unmarshal([]byte(s), &r); err != nil {
		return Retention{}, fmt.Errorf("%w: retention %q does not decode: %w", ErrCorrupt, s, err)
	}
	r.Mode = "newer:" + r.Mode
	return r, nil
}

// RetentionInput is what a plan of retention looks at (03 §9 step 2).
type RetentionInput struct {
	Row    ChainRow
	Policy Retention
	// Slots from the watermark on, in order, up to absorbed_end.
	Slots []SlotRow
	// Local are cursors known only to the owner: consumers whose slot is not absorbed.
	Local []segment.Consumer
	Now   time.Time
}

// PlanRetention decides what a chain may give up; false if that is no more than what
// it gave up before. It is pure. Boundaries lie at the ends of slots. The highest one
// is taken that
//
//   - any single limit allows, if one is set (so all set limits hold), and that no
//     consumer has yet to pass; without a limit, the consumers alone decide, and
//     without a consumer nothing goes;
//   - leaves the floor's full-size segments behind it;
//   - lies below absorbed_end.
func PlanRetention(in RetentionInput) (Watermark, bool) {
	row, p := &in.Row, &in.Policy
	slowest := SlowestCursor(slices.Concat(row.Consumers, in.Local))
	if p.Keeps() || !p.limited() && !slowest.OK {
		return Watermark{}, false
	}
	old := agedSlots(&in)
	var left int64 // bytes of the slots behind
	for i := len(in.Slots) - 1; i >= 0; i-- {
		s := &in.Slots[i]
		if s.Void || s.ID >= row.AbsorbedEnd || s.Next < 1 || s.Next > row.NextSeq {
			continue // of no history: neither a boundary nor something that stays
		}
		if s.ID <= row.WatermarkSegment {
			break
		}
		end := s.Next - 1
		limits := !p.limited() || i < old ||
			p.Rows > 0 && uint64(row.NextSeq-s.Next) >= p.Rows ||
			p.Bytes > 0 && left >= p.Bytes ||
			p.Segments > 0 && left >= p.fullSegments(p.Segments)
		if limits && end > 0 && left >= p.floor() && (!slowest.OK || end <= slowest.Seq) {
			return Watermark{Chain: row.Chain, Seq: end, Segment: s.ID}, true
		}
		left += max(0, s.Bytes)
	}
	return Watermark{}, false
}

// agedSlots counts the slots from the first on that age alone lets go: up to the first
// that is younger, or whose seal time nobody knows.
func agedSlots(in *RetentionInput) int {
	if in.Policy.Age <= 0 {
		return 0
	}
	old := in.Now.Add(-in.Policy.Age)
	for i := range in.Slots {
		if s := &in.Slots[i]; !s.Void && (s.Sealed.IsZero() || s.Sealed.After(old)) {
			return i
		}
	}
	return len(in.Slots)
}

// MaxRetentionSlots bounds the slots of one plan; see ThinSlots.
const MaxRetentionSlots = 16384

// ThinSlots halves a long list of slots, so that a plan over any number of them needs
// bounded memory: two neighbours become one that ends where the second does. Each end
// left is a slot's end, so a plan over fewer of them is as safe, only coarser at the
// front. Void slots go.
func ThinSlots(slots []SlotRow) []SlotRow {
	pair := false
	return joinSlots(slots, func(_, _ *SlotRow) bool {
		pair = !pair
		return pair
	})
}

// MergeTrimmed is what stands of the rows of trimmed slots where nothing is given up:
// as few as have a slot's end every full-size segment, for a policy that is set later.
func MergeTrimmed(slots []SlotRow) []SlotRow {
	return joinSlots(slots, func(was, s *SlotRow) bool { return was.Bytes+s.Bytes <= DefaultSegmentBytes })
}

// joinSlots joins neighbours in place while join says so; of two, the second's identity
// and end stay, and the later seal time.
func joinSlots(slots []SlotRow, join func(was, s *SlotRow) bool) []SlotRow {
	out := slots[:0]
	for _, s := range slots {
		if s.Void {
			continue
		}
		if n := len(out); n > 0 && join(&out[n-1], &s) {
			was := &out[n-1]
			s.First, s.Prev = was.First, was.Prev
			s.Bytes += was.Bytes
			if was.Sealed.IsZero() || !s.Sealed.IsZero() && was.Sealed.After(s.Sealed) {
				s.Sealed = was.Sealed
			}
			out[n-1] = s
			continue
		}
		out = append(out, s)
	}
	return out
}

// SlotPager reads a chain's slot rows; Reader is one.
type SlotPager interface {
	Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]SlotRow, error)
}

// RetentionSlots reads what a plan looks at: the slots above the row's watermark,
// thinned as often as they are too many.
func RetentionSlots(ctx context.Context, cat SlotPager, row *ChainRow) ([]SlotRow, error) {
	const page = 2048
	var out []SlotRow
	for from := row.WatermarkSegment + 1; ; {
		got, err := cat.Slots(ctx, row.Chain, from, page)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
		if len(got) < page {
			return out, nil
		}
		from = got[len(got)-1].ID + 1
		if len(out) > MaxRetentionSlots {
			out = ThinSlots(out)
		}
	}
}

// CheckWatermark holds a boundary against the row (03 §9 step 3). ends is the slot row
// at its segment, nil if none stands. standing: it is no higher than what is committed.
func CheckWatermark(row *ChainRow, w *Watermark, ends *SlotRow, now time.Time) (standing bool, err error) {
	const verb = "RaiseWatermark"
	if w.Seq == 0 || w.Segment == 0 {
		return false, Invalid(verb, "seq %d, segment %d", w.Seq, w.Segment)
	}
	if w.Seq <= row.WatermarkSeq && w.Segment <= row.WatermarkSegment {
		return true, nil
	}
	slowest := SlowestCursor(row.Consumers)
	switch {
	case w.Term != 0 && w.Term != row.Term:
		return false, Conflict(verb, "term", w.Term, row.Term)
	case w.Term == 0 && !row.Closed && now.Before(row.LeaseEnd):
		return false, Conflict(verb, "lease", "ended, or the planner's term", fmt.Sprintf("owner %s until %s", row.Owner, row.LeaseEnd.Format(time.RFC3339)))
	case slowest.OK && slowest.Seq < w.Seq:
		return false, Conflict(verb, "consumer", fmt.Sprintf("none below %d", w.Seq), slowest.Seq)
	case w.Segment >= row.AbsorbedEnd || w.Seq >= row.NextSeq:
		return false, Conflict(verb, "absorbed_end", fmt.Sprintf("above segment %d, seq %d", w.Segment, w.Seq), fmt.Sprintf("%d, next seq %d", row.AbsorbedEnd, row.NextSeq))
	case ends == nil:
		return false, Conflict(verb, "slot", fmt.Sprintf("one at %d that ends with %d", w.Segment, w.Seq), "no slot row there")
	case ends.Void || ends.Next-1 != w.Seq:
		return false, Conflict(verb, "slot", fmt.Sprintf("one at %d that ends with %d", w.Segment, w.Seq), fmt.Sprintf("void %v, ends with %d", ends.Void, ends.Next-1))
	}
	return false, nil
}

// WatermarkRow is the chain's row after its watermark was raised; raised is false where the
// boundary is no higher than what is committed.
func WatermarkRow(row ChainRow, w *Watermark, ends *SlotRow, now time.Time) (next ChainRow, raised bool, err error) {
	standing, err := CheckWatermark(&row, w, ends, now)
	if err != nil || standing {
		return row, false, err
	}
	row.WatermarkSeq, row.WatermarkSegment = w.Seq, w.Segment
	return row, true, nil
}

// TrimmedRows is the end of the rows of slots that are gone. The chain's last stays as
// it is: its UUID and seal time say where the chain stands.
func TrimmedRows(row *ChainRow) segment.ID { return min(row.Trimmed, row.AbsorbedEnd-1) }

// ForgottenSlots is the end of the slot rows that nobody needs: those of slots that are
// trimmed and given up.
func ForgottenSlots(row *ChainRow) segment.ID {
	return min(TrimmedRows(row), row.WatermarkSegment+1)
}
