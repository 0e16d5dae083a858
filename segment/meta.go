package segment

import (
	"fmt"
	"strconv"
	"strings"
)

// The names of a slot's object metadata (x-amz-meta-…), so that a HEAD proves
// whose rows stand at a position, whatever compressor wrote them.
const (
	MetaSegmentUUID   = "strandline-segment-uuid"
	MetaSegmentDigest = "strandline-segment-digest"
	MetaSegmentBytes  = "strandline-segment-bytes"
)

// SlotMeta is what a slot's metadata says. Two that are equal are the same
// segment.
type SlotMeta struct {
	UUID   UUID
	Digest uint64
	Length int64
}

// Meta is what a slot's metadata must say.
func (s *Slot) Meta() SlotMeta { return SlotMeta{s.UUID, s.Digest, s.Length} }

// Meta is the object metadata of this segment's slot.
func (b *Bundle) Meta() map[string]string { return b.slot.Meta().Map() }

// Map is the metadata as an object carries it.
func (m SlotMeta) Map() map[string]string {
	return map[string]string{
		MetaSegmentUUID:   m.UUID.String(),
		MetaSegmentDigest: fmt.Sprintf("%016x", m.Digest),
		MetaSegmentBytes:  strconv.FormatInt(m.Length, 10),
	}
}

// ParseMeta reads a slot's metadata. Names are compared without regard to case,
// and a prefix x-amz-meta- is ignored: clients differ in what they hand out.
func ParseMeta(meta map[string]string) (SlotMeta, error) {
	got := map[string]string{}
	for k, v := range meta {
		got[strings.TrimPrefix(strings.ToLower(k), "x-amz-meta-")] = v
	}
	var m SlotMeta
	var err error
	if m.UUID, err = parseUUID(got[MetaSegmentUUID]); err != nil {
		return SlotMeta{}, metaError(MetaSegmentUUID, got[MetaSegmentUUID], err)
	}
	if m.Digest, err = parseHex64(got[MetaSegmentDigest]); err != nil {
		return SlotMeta{}, metaError(MetaSegmentDigest, got[MetaSegmentDigest], err)
	}
	if m.Length, err = parseLength(got[MetaSegmentBytes]); err != nil {
		return SlotMeta{}, metaError(MetaSegmentBytes, got[MetaSegmentBytes], err)
	}
	return m, nil
}

func parseLength(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && (n < 0 || strconv.FormatInt(n, 10) != s) {
		err = fmt.Errorf("%q is no plain decimal number", s)
	}
	return n, err
}

func metaError(name, value string, err error) error {
	e := corrupt(0, "slot metadata %s is %q", name, value)
	e.Err = err
	return e
}

func parseUUID(s string) (UUID, error) {
	var u UUID
	if err := u.UnmarshalText([]byte(s)); err != nil {
		return UUID{}, err
	}
	if u.String() != s {
		return UUID{}, fmt.Errorf("%q is not the canonical form of a UUID", s)
	}
	return u, nil
}

func parseHex64(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0, err
	}
	if fmt.Sprintf("%016x", v) != s {
		return 0, fmt.Errorf("%q is not 16 lower-case hex digits", s)
	}
	return v, nil
}
