package segment

import (
	"errors"
	"fmt"
)

// The names of the files in a shard directory.
const (
	CheckpointFile = "CHECKPOINT"
	ReclaimFile    = "reclaim.json"
	IndexFile      = "index.json"
	IdentityFile   = "IDENTITY"
	LockFile       = "LOCK"
)

// FileName is the name of a segment's file.
func FileName(id ID) string { return fmt.Sprintf("%016x.seg", uint64(id)) }

// TornName is where recovery keeps what it cut off a segment.
func TornName(id ID) string { return fmt.Sprintf("%016x.torn", uint64(id)) }

// ParseFileName reads the position out of a segment file's name.
func ParseFileName(name string) (ID, bool) {
	p := keyParser{rest: name, ok: true}
	id := ID(p.hex(16))
	p.must(".seg")
	return id, p.ok && p.rest == ""
}

const (
	checkpointMagic   = "OWCK"
	checkpointVersion = 1
	// CheckpointBytes is the length of a CHECKPOINT file.
	CheckpointBytes = 32
)

// Checkpoint says that the shared tier holds everything of the chain up to this
// byte of this segment (seed 001 §6.7).
type Checkpoint struct {
	UUID   UUID
	Offset int64
}

// EncodeCheckpoint gives the 32 bytes of a CHECKPOINT file.
func EncodeCheckpoint(c Checkpoint) []byte {
	b := make([]byte, 0, CheckpointBytes)
	b = append(b, checkpointMagic...)
	b = le.AppendUint16(b, checkpointVersion)
	b = le.AppendUint16(b, 0)
	b = append(b, c.UUID[:]...)
	return le.AppendUint64(b, uint64(c.Offset))
}

// DecodeCheckpoint reads a CHECKPOINT file. One that is present but invalid is
// corruption: taking it for absent would publish rows twice.
func DecodeCheckpoint(b []byte) (Checkpoint, error) {
	if len(b) != CheckpointBytes {
		return Checkpoint{}, corrupt(0, "checkpoint is %d bytes, %d wanted", len(b), CheckpointBytes)
	}
	if string(b[:4]) != checkpointMagic {
		return Checkpoint{}, corrupt(0, "checkpoint magic is %q, %q wanted", b[:4], checkpointMagic)
	}
	if v := le.Uint16(b[4:]); v != checkpointVersion {
		return Checkpoint{}, badVersion(4, "checkpoint", uint64(v), checkpointVersion)
	}
	if f := le.Uint16(b[6:]); f != 0 {
		return Checkpoint{}, corrupt(6, "checkpoint flags are %#x, 0 wanted", f)
	}
	c := Checkpoint{UUID: UUID(b[8:24]), Offset: int64(le.Uint64(b[24:]))}
	if c.Offset < HeaderBytes || c.Offset > MaxSegmentBytes {
		return Checkpoint{}, corrupt(24, "checkpoint at byte %d of a segment", c.Offset)
	}
	return c, nil
}

// Reclaim is reclaim.json: the shard has given up its files up to here. It is
// the commit point of local reclamation: what stands below is a leftover.
type Reclaim struct {
	Version int `json:"version"`
	Seq     Seq `json:"seq"`     // reclaimed through
	Segment ID  `json:"segment"` // reclaimed through
}

const reclaimVersion = 1

// EncodeReclaim gives the bytes of reclaim.json. Version is filled in.
func EncodeReclaim(r Reclaim) ([]byte, error) {
	r.Version = reclaimVersion
	return encodeDocument(r)
}

// DecodeReclaim reads reclaim.json.
func DecodeReclaim(b []byte) (Reclaim, error) {
	var r Reclaim
	err := decodeDocument(b, &r, ReclaimFile, reclaimVersion)
	return r, err
}

// Index is index.json: the state at the head of the chain, so that a writer opens
// without reading its log. It is a cache, believed only if it matches the newest
// segment exactly; its length is also a witness in recovery (JudgeTail).
type Index struct {
	Version   int        `json:"version"`
	NextSeq   Seq        `json:"next_seq"`
	Segment   ID         `json:"segment"`
	UUID      UUID       `json:"uuid"`
	Term      Term       `json:"term"`
	Bytes     int64      `json:"bytes"`
	Frames    uint32     `json:"frames"`
	Digest    string     `json:"prefix_digest"` // XxHash64 of those bytes, 16 hex; "" if not known
	Sealed    bool       `json:"sealed"`
	Consumers []Consumer `json:"consumers"`
	Producers []Producer `json:"producers"` // least recently used first
}

const indexVersion = 1

func (x *Index) check() error {
	if x.Segment == 0 || x.NextSeq == 0 || x.Bytes < HeaderBytes || x.Bytes > MaxSegmentBytes || x.Frames == 0 {
		return invalid("segment %d of %d bytes and %d frames, next seq %d", x.Segment, x.Bytes, x.Frames, x.NextSeq)
	}
	if x.Digest != "" {
		if _, err := parseHex64(x.Digest); err != nil {
			return invalid("%w", err)
		}
	}
	return errors.Join(checkSorted(x.Consumers), checkProducers(x.Producers))
}

// EncodeIndex gives the bytes of index.json. Version is filled in, consumers are
// put in order.
func EncodeIndex(x *Index) ([]byte, error) {
	y := *x
	y.Version = indexVersion
	var err error
	if y.Consumers, err = documentConsumers(x.Consumers); err != nil {
		return nil, err
	}
	if y.Producers == nil {
		y.Producers = []Producer{}
	}
	if err := y.check(); err != nil {
		return nil, err
	}
	return encodeDocument(&y)
}

// DecodeIndex reads index.json. An invalid one is as good as none: it is a cache.
func DecodeIndex(b []byte) (*Index, error) {
	x := &Index{}
	if err := decodeDocument(b, x, IndexFile, indexVersion); err != nil {
		return nil, err
	}
	if err := checkDocument(IndexFile, x.check()); err != nil {
		return nil, err
	}
	return x, nil
}

// Identity is the IDENTITY file: the writer that this directory is, made with it.
type Identity struct {
	Version int  `json:"version"`
	Writer  UUID `json:"writer"`
}

const identityVersion = 1

// EncodeIdentity gives the bytes of IDENTITY. Version is filled in.
func EncodeIdentity(i Identity) ([]byte, error) {
	if i.Writer == (UUID{}) {
		return nil, invalid("identity without a writer")
	}
	i.Version = identityVersion
	return encodeDocument(i)
}

// DecodeIdentity reads IDENTITY.
func DecodeIdentity(b []byte) (Identity, error) {
	var i Identity
	err := decodeDocument(b, &i, IdentityFile, identityVersion)
	if err == nil && i.Writer == (UUID{}) {
		err = corrupt(0, "%s names no writer", IdentityFile)
	}
	return i, err
}

// documentConsumers puts consumers in the order in which documents have them;
// no consumers are an empty list, never null.
func documentConsumers(cs []Consumer) ([]Consumer, error) {
	out, err := sortedConsumers(cs)
	if out == nil {
		out = []Consumer{}
	}
	return out, err
}

func checkSorted(cs []Consumer) error {
	out, err := sortedConsumers(cs)
	if err != nil {
		return err
	}
	for i := range out {
		if out[i] != cs[i] {
			return invalid("consumers out of order")
		}
	}
	return nil
}
