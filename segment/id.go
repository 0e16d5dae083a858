package segment

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/google/uuid"
)

// The words of the design as types. None is ever negative; the zero value of
// each numbered id means "none yet".
type (
	// Epoch is one version of the topology.
	Epoch uint32
	// Shard is the unit of single-writer ownership, from 0.
	Shard uint32
	// ID numbers the segments of a chain, and with it a slot's position: 1, 2, 3 …
	ID uint64
	// Seq is a row's number in its chain: 1, 2, 3 …, gapless over the chain.
	Seq uint64
	// Term is the fencing number of a chain's owner.
	Term uint64
	// UUID is the identity of a segment, an object, a writer or a deployment.
	UUID = uuid.UUID
	// Class names a storage class; the deployment maps classes to bucket sets.
	Class string
)

// ClassStandard is the class of every rewrite's output.
const ClassStandard Class = "standard"

// Chain is the run of a shard's slots in one epoch.
type Chain struct {
	Epoch Epoch
	Shard Shard
}

func (c Chain) String() string { return fmt.Sprintf("%08x.%08x", uint32(c.Epoch), uint32(c.Shard)) }

// Pos is a position in a stream: it orders by epoch, then by seq.
type Pos struct {
	Epoch Epoch `json:"epoch"`
	Seq   Seq   `json:"seq"`
}

// Compare orders positions.
func (p Pos) Compare(q Pos) int {
	return cmp.Or(cmp.Compare(p.Epoch, q.Epoch), cmp.Compare(p.Seq, q.Seq))
}

// Less says whether p stands before q.
func (p Pos) Less(q Pos) bool { return p.Compare(q) < 0 }

// Next is the position right after p in its epoch.
func (p Pos) Next() Pos { return Pos{p.Epoch, p.Seq + 1} }

func (p Pos) String() string { return fmt.Sprintf("%d.%d", p.Epoch, p.Seq) }

// Row is one event. Time is Unix nanoseconds. Txn may be empty.
type Row struct {
	Seq     Seq
	Time    int64
	Txn     []byte
	Payload []byte
}

// Clone is the row with bytes of its own.
func (r Row) Clone() Row {
	r.Txn, r.Payload = bytes.Clone(r.Txn), bytes.Clone(r.Payload)
	return r
}

// Consumer is a durable consumer with its cursor: the last seq it acknowledged.
type Consumer struct {
	Name   string `json:"name"`
	Cursor Seq    `json:"cursor"`
}

// Producer is an idempotent producer: its last sequence, and the rows that got.
type Producer struct {
	ID       string `json:"id"`
	Sequence uint64 `json:"sequence"`
	First    Seq    `json:"first"`
	Last     Seq    `json:"last"`
}
