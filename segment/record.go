package segment

import (
	"errors"
	"slices"
	"strings"
)

// Head is a chain's head in the bucket: what its catalog row had committed when
// it was written. It is the only object that is ever replaced, and never goes
// back.
type Head struct {
	Version          int        `json:"version"`
	Epoch            Epoch      `json:"epoch"`
	Shard            Shard      `json:"shard"`
	Term             Term       `json:"term"`
	AbsorbedEnd      ID         `json:"absorbed_end"` // first position not absorbed
	NextSeq          Seq        `json:"next_seq"`
	LastUUID         UUID       `json:"last_uuid"`
	WatermarkSeq     Seq        `json:"watermark_seq"`
	WatermarkSegment ID         `json:"watermark_segment"`
	Condemned        ID         `json:"condemned"` // first position not condemned
	Trimmed          ID         `json:"trimmed"`   // first position not trimmed
	Consumers        []Consumer `json:"consumers"`
	Nonce            string     `json:"nonce"` // of this write, to know it again after a lost answer
}

const headVersion = 1

// Chain is the chain that the head is of.
func (h *Head) Chain() Chain { return Chain{h.Epoch, h.Shard} }

func (h *Head) check() error {
	if h.Trimmed > h.Condemned || h.Condemned > h.AbsorbedEnd {
		return invalid("cursors trimmed %d, condemned %d, absorbed_end %d", h.Trimmed, h.Condemned, h.AbsorbedEnd)
	}
	return checkSorted(h.Consumers)
}

// EncodeHead gives the bytes of a chain's head. Version is filled in.
func EncodeHead(h *Head) ([]byte, error) {
	g := *h
	g.Version = headVersion
	var err error
	if g.Consumers, err = documentConsumers(h.Consumers); err != nil {
		return nil, err
	}
	if err := g.check(); err != nil {
		return nil, err
	}
	return encodeDocument(&g)
}

// DecodeHead reads a chain's head.
func DecodeHead(b []byte) (*Head, error) {
	h := &Head{}
	if err := decodeDocument(b, h, "chain head", headVersion); err != nil {
		return nil, err
	}
	if err := checkDocument("chain head", h.check()); err != nil {
		return nil, err
	}
	return h, nil
}

// Stamp says whose a bucket is, and what it serves.
type Stamp struct {
	Version    int   `json:"version"`
	Deployment UUID  `json:"deployment"`
	Class      Class `json:"class"`
}

const stampVersion = 1

func (s Stamp) check() error {
	if s.Deployment == (UUID{}) || s.Class == "" {
		return invalid("stamp of deployment %s, class %q", s.Deployment, s.Class)
	}
	return nil
}

// EncodeStamp gives the bytes of meta/strandline. Version is filled in.
func EncodeStamp(s Stamp) ([]byte, error) {
	s.Version = stampVersion
	if err := s.check(); err != nil {
		return nil, err
	}
	return encodeDocument(s)
}

// DecodeStamp reads meta/strandline.
func DecodeStamp(b []byte) (Stamp, error) {
	var s Stamp
	if err := decodeDocument(b, &s, "bucket stamp", stampVersion); err != nil {
		return Stamp{}, err
	}
	return s, checkDocument("bucket stamp", s.check())
}

// TopologyRecord is an epoch as it was created: its constants, and the state it
// began in.
type TopologyRecord struct {
	Version int      `json:"version"`
	Epoch   Epoch    `json:"epoch"`
	Shards  uint32   `json:"shards"`
	Class   Class    `json:"class"`
	Buckets []string `json:"buckets"` // the first decides
	Settle  bool     `json:"settle"`
	State   string   `json:"state"`
}

const topologyVersion = 1

func (t *TopologyRecord) check() error {
	if t.Epoch == 0 || t.Shards == 0 || t.Class == "" || slices.Contains(t.Buckets, "") {
		return invalid("epoch %d with %d shards, class %q, buckets %q", t.Epoch, t.Shards, t.Class, t.Buckets)
	}
	if !slices.Contains([]string{"opening", "open", "closing", "closed"}, t.State) {
		return invalid("epoch %d is %q", t.Epoch, t.State)
	}
	return nil
}

// EncodeTopology gives the bytes of an epoch's record. Version is filled in.
func EncodeTopology(t *TopologyRecord) ([]byte, error) {
	u := *t
	u.Version = topologyVersion
	if u.Buckets == nil {
		u.Buckets = []string{}
	}
	if err := u.check(); err != nil {
		return nil, err
	}
	return encodeDocument(&u)
}

// DecodeTopology reads an epoch's record.
func DecodeTopology(b []byte) (*TopologyRecord, error) {
	t := &TopologyRecord{}
	if err := decodeDocument(b, t, "topology record", topologyVersion); err != nil {
		return nil, err
	}
	if err := checkDocument("topology record", t.check()); err != nil {
		return nil, err
	}
	return t, nil
}

// TrimRecord is a batch of trims of a chain's streams, journaled before their
// walk. A snapshot says all that the records before it said.
type TrimRecord struct {
	Version  int          `json:"version"`
	Epoch    Epoch        `json:"epoch"`
	Shard    Shard        `json:"shard"`
	N        uint64       `json:"n"`
	Snapshot bool         `json:"snapshot"`
	Streams  []StreamTrim `json:"streams"` // by name
}

// StreamTrim is where a stream begins to live.
type StreamTrim struct {
	Name     string `json:"name"`
	LiveFrom Pos    `json:"live_from"`
	Deleted  bool   `json:"deleted"`
}

const trimVersion = 1

// Chain is the chain that the record is of.
func (t *TrimRecord) Chain() Chain { return Chain{t.Epoch, t.Shard} }

func (t *TrimRecord) check() error {
	for i, s := range t.Streams {
		if err := checkAnyStream(s.Name); err != nil {
			return errors.Join(ErrInvalid, err)
		}
		if i > 0 && t.Streams[i-1].Name >= s.Name {
			return invalid("stream %q stands after %q", s.Name, t.Streams[i-1].Name)
		}
	}
	return nil
}

// EncodeTrim gives the bytes of a trim record. Version is filled in, streams are
// put in order.
func EncodeTrim(t *TrimRecord) ([]byte, error) {
	u := *t
	u.Version = trimVersion
	u.Streams = slices.Clone(t.Streams)
	if u.Streams == nil {
		u.Streams = []StreamTrim{}
	}
	slices.SortFunc(u.Streams, func(a, b StreamTrim) int { return strings.Compare(a.Name, b.Name) })
	if err := u.check(); err != nil {
		return nil, err
	}
	return encodeDocument(&u)
}

// DecodeTrim reads a trim record.
func DecodeTrim(b []byte) (*TrimRecord, error) {
	t := &TrimRecord{}
	if err := decodeDocument(b, t, "trim record", trimVersion); err != nil {
		return nil, err
	}
	if err := checkDocument("trim record", t.check()); err != nil {
		return nil, err
	}
	return t, nil
}
