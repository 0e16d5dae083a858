package segment

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// FrameDescription is one frame, for people.
type FrameDescription struct {
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	Kind   string `json:"kind"`
	Synced uint32 `json:"synced"`
	Detail string `json:"detail"`
}

// SegmentDescription is what `strandline inspect` says of a segment file.
type SegmentDescription struct {
	Size      int64              `json:"size"`
	UUID      string             `json:"uuid,omitempty"`
	Chain     string             `json:"chain,omitempty"`
	Segment   ID                 `json:"segment,omitempty"`
	Term      Term               `json:"term,omitempty"`
	Prev      string             `json:"prev,omitempty"`
	Created   string             `json:"created,omitempty"`
	Base      Seq                `json:"base,omitempty"`
	Next      Seq                `json:"next,omitempty"`
	Consumers int                `json:"consumers"`
	Producers int                `json:"producers"`
	Frames    uint32             `json:"frames"`
	Kinds     map[string]int     `json:"kinds"`
	Valid     int64              `json:"valid_bytes"`
	Sealed    bool               `json:"sealed"`
	Digest    string             `json:"digest,omitempty"` // of the valid bytes
	Room      int64              `json:"room,omitempty"`   // bytes behind an open segment's end, with no frame of it: zeros or stale ones
	Problem   string             `json:"problem,omitempty"`
	List      []FrameDescription `json:"list,omitempty"` // as many as were asked for
}

// DescribeSegment describes a segment file, whatever its state, listing at most
// list frames. What is wrong with the bytes is its Problem; an error is an error
// of reading.
func DescribeSegment(r io.ReaderAt, size int64, list int) (*SegmentDescription, error) {
	d := &SegmentDescription{Size: size, Kinds: map[string]int{}}
	s, err := NewScanner(r, size)
	for err == nil {
		var f Frame
		if f, err = s.Next(); err != nil {
			break
		}
		d.Kinds[f.Kind.String()]++
		if len(d.List) < list {
			d.List = append(d.List, describeFrame(f))
		}
	}
	if s != nil {
		d.scanned(s)
	}
	if errors.Is(err, io.EOF) {
		return d, nil
	}
	if !IsStructural(err) {
		return nil, err
	}
	if s != nil && s.Frames() > 0 && s.Sealed() == nil && isInvalidFrame(err) {
		t, jerr := JudgeTail(r, size, s.UUID(), s.Offset(), 0)
		if jerr == nil && len(t.Kept) == 0 {
			d.Room = t.Cut
			return d, nil
		}
	}
	d.Problem = problem(err)
	return d, nil
}

func isInvalidFrame(err error) bool {
	var inv *InvalidFrameError
	return errors.As(err, &inv)
}

func (d *SegmentDescription) scanned(s *Scanner) {
	st := s.Start()
	d.UUID, d.Valid, d.Frames = s.UUID().String(), s.Offset(), s.Frames()
	d.Sealed, d.Digest = s.Sealed() != nil, fmt.Sprintf("%016x", s.Digest())
	if d.Frames == 0 {
		return
	}
	d.Chain, d.Segment, d.Term = st.Chain.String(), st.ID, st.Term
	d.Prev, d.Created = st.Prev.String(), nanos(st.Created)
	d.Base, d.Next = st.Base, s.NextSeq()
	d.Consumers, d.Producers = len(st.Consumers), len(st.Producers)
}

// problem is a finding without the advice that an error carries.
func problem(err error) string {
	var c *CorruptionError
	if errors.As(err, &c) {
		s := fmt.Sprintf("at %d: %s", c.Offset, c.Reason)
		if c.Err != nil {
			s += ": " + c.Err.Error()
		}
		return s
	}
	return err.Error()
}

func describeFrame(f Frame) FrameDescription {
	return FrameDescription{f.Offset, f.Bytes(), f.Kind.String(), f.Synced, frameDetail(f)}
}

func frameDetail(f Frame) string {
	switch f.Kind {
	case KindBatch:
		b, err := DecodeBatch(f.Payload)
		if err != nil {
			return problem(err)
		}
		s := fmt.Sprintf("stream %q, seq %d to %d, %s to %s", b.Stream, b.First, b.Last(),
			nanos(b.Rows[0].Time), nanos(b.Rows[len(b.Rows)-1].Time))
		if b.Producer != "" {
			s += fmt.Sprintf(", producer %q at %d", b.Producer, b.Sequence)
		}
		return s
	case KindStart:
		st, err := DecodeStart(f.Payload)
		if err != nil {
			return problem(err)
		}
		return fmt.Sprintf("chain %s, segment %d, term %d, base seq %d", st.Chain, st.ID, st.Term, st.Base)
	case KindSeal:
		seal, err := DecodeSeal(f.Payload)
		if err != nil {
			return problem(err)
		}
		return fmt.Sprintf("%d frames before it, next seq %d, digest %016x", seal.Frames, seal.Next, seal.Digest)
	}
	c, err := DecodeConsumer(f.Payload)
	if err != nil {
		return problem(err)
	}
	return fmt.Sprintf("consumer %q at %d", c.Name, c.Cursor)
}

// Text is the description in lines.
func (d *SegmentDescription) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "segment file of %d bytes, %d valid in %d frames\n", d.Size, d.Valid, d.Frames)
	line(&b, "uuid", d.UUID)
	if d.Frames > 0 {
		line(&b, "chain", d.Chain)
		line(&b, "segment", fmt.Sprintf("%d, term %d, after %s", d.Segment, d.Term, d.Prev))
		line(&b, "created", d.Created)
		line(&b, "seqs", fmt.Sprintf("%d to before %d", d.Base, d.Next))
		line(&b, "state", fmt.Sprintf("sealed: %t, %d consumers, %d producers at its start", d.Sealed, d.Consumers, d.Producers))
		line(&b, "digest", d.Digest)
	}
	if d.Room > 0 {
		line(&b, "room", fmt.Sprintf("%d bytes to be written over behind the last frame", d.Room))
	}
	line(&b, "PROBLEM", d.Problem)
	for _, f := range d.List {
		fmt.Fprintf(&b, "%12d %9d  %-15s synced %-10d %s\n", f.Offset, f.Bytes, f.Kind, f.Synced, f.Detail)
	}
	return b.String()
}

func line(b *strings.Builder, name, value string) {
	if value != "" {
		fmt.Fprintf(b, "  %-9s %s\n", name, value)
	}
}

func nanos(t int64) string { return time.Unix(0, t).UTC().Format(time.RFC3339Nano) }
