package segment

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestDescribeSegment(t *testing.T) {
	seg := smallSegment(t).seal()
	d := mustDo(DescribeSegment(bytes.NewReader(seg), int64(len(seg)), 3))(t)
	if !d.Sealed || d.Problem != "" || len(d.List) != 3 || d.Frames != 9 || d.Kinds["batch"] != 4 || d.Segment != 7 || d.Next != 105 {
		t.Errorf("%+v", d)
	}
	if b, err := json.Marshal(d); err != nil || !bytes.Contains(b, []byte(`"chain":"00000001.00000002"`)) {
		t.Errorf("%s, %v", b, err)
	}
	open := smallSegment(t).b
	longer := append(bytes.Clone(open), make([]byte, 4096)...)
	d = mustDo(DescribeSegment(bytes.NewReader(longer), int64(len(longer)), 3))(t)
	if d.Sealed || d.Problem != "" || d.Room != 4096 || d.Valid != int64(len(open)) || !strings.Contains(d.Text(), "4096 bytes to be written over") {
		t.Errorf("an open segment with zeros behind it: %+v", d)
	}
	for what, c := range map[string]struct {
		seg     []byte
		problem string
		valid   int64
	}{
		"torn":       {seg[:len(seg)-5], "ends within the frame payload", int64(len(seg) - FrameHeaderBytes - sealBytes)},
		"headless":   {seg[:10], "segment header is 10 bytes", 0},
		"other file": {[]byte(strings.Repeat("x", 100)), "segment magic", 0},
		"damaged":    {append(bytes.Clone(seg[:60]), seg[61:]...), "frame payload CRC", HeaderBytes},
	} {
		d := mustDo(DescribeSegment(bytes.NewReader(c.seg), int64(len(c.seg)), 100))(t)
		if !strings.Contains(d.Problem, c.problem) || d.Valid != c.valid || !strings.Contains(d.Text(), "PROBLEM") {
			t.Errorf("%s: %q, %d valid", what, d.Problem, d.Valid)
		}
	}
}

func TestDescribeObject(t *testing.T) {
	obj, f := smallSlot(t)
	size := int64(len(obj))
	d, need, err := DescribeObject(obj[100:], size, 2)
	if err != nil || need != 0 || d.Kind != "slot" || d.Count != len(f.Chunks) || len(d.Chunks) != 2 || d.Rows != f.Slot.Rows() || d.Slot.Segment != 7 {
		t.Errorf("%+v, %d, %v", d, need, err)
	}
	if b, err := json.Marshal(d); err != nil || !bytes.Contains(b, []byte(`"kind":"slot"`)) {
		t.Errorf("%s, %v", b, err)
	}
	if d, need, err = DescribeObject(obj[size-TrailerBytes:], size, 2); d != nil || err != nil || need != size-f.ChunksEnd() {
		t.Errorf("%+v, %d, %v", d, need, err)
	}
	for what, c := range map[string]struct {
		tail    []byte
		problem string
	}{
		"short":   {obj[:20], "shorter than a trailer"},
		"cut":     {obj[:size-1], "object magic"},
		"damaged": {append(append(bytes.Clone(obj[:f.ChunksEnd()+5]), obj[f.ChunksEnd()+5]^1), obj[f.ChunksEnd()+6:]...), "does not match its CRC"},
	} {
		d, _, err := DescribeObject(c.tail, int64(len(c.tail)), 2)
		if err != nil || !strings.Contains(d.Problem, c.problem) || !strings.Contains(d.Text(), "PROBLEM") {
			t.Errorf("%s: %+v, %v", what, d, err)
		}
	}
}

// An error says where, why, and what to do next.
func TestErrorsSayWhatToDo(t *testing.T) {
	err := InFile(badVersion(40, "object", 9, 1), "seg/x", 5)
	for _, want := range []string{"seg/x", "segment 5", "offset 40", "version 9", "this build reads 1", "restore these bytes"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if e := CheckStream("~x").Error(); !strings.Contains(e, "reserved") || !strings.Contains(e, "choose another") {
		t.Error(e)
	}
}
