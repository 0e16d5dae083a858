package catalog

import (
	"time"

	"github.com/strandline/strandline/segment"
)

// Settings are the deployment's identity and its safety margins.
type Settings struct {
	Deployment segment.UUID
	ReadGrace  Margin
	// OrphanGrace is the age at which an intent is judged.
	OrphanGrace Margin
	Schema      int
}

// Margin is a safety margin that changes only with the old value's consent: until
// Effective, deleters use the longer of Value and Old, readers the shorter.
//
// A margin that nobody has set yet (Seeded false) is careful on both sides:
// deleters wait the default, readers rely on the least that may ever be set. So
// the first value takes effect at once and nobody is surprised by it.
type Margin struct {
	Seeded    bool
	Value     time.Duration
	Old       time.Duration
	Effective time.Time
}

// Topology is one epoch's constants.
type Topology struct {
	Epoch   segment.Epoch
	Shards  uint32
	Class   segment.Class
	Buckets []string // names of the bucket set's stores, the first decides
	Settle  bool
	State   TopologyState
	// Retention of its chains; the one field that may change, but for the state.
	Retention Retention
}

// TopologyState is the life of an epoch.
type TopologyState string

// The states of an epoch.
const (
	TopologyOpening TopologyState = "opening"
	TopologyOpen    TopologyState = "open"
	TopologyClosing TopologyState = "closing" // its owners publish what they have and let go
	TopologyClosed  TopologyState = "closed"
)

// ChainRow is a chain with its cursors. Cursors are half-open, "first position
// not yet …": Trimmed <= Condemned <= Rewritten <= AbsorbedEnd, all from 1 on.
type ChainRow struct {
	segment.Chain
	Owner    segment.UUID // writer UUID; Nil: never acquired
	Address  string
	Term     segment.Term
	LeaseEnd time.Time
	Closed   bool

	AbsorbedEnd segment.ID
	LastUUID    segment.UUID // of the last absorbed segment that is not void
	LastTerm    segment.Term // of the last absorbed slot that is not void
	NextSeq     segment.Seq

	Rewritten   segment.ID
	Condemned   segment.ID
	CondemnedAt time.Time
	Trimmed     segment.ID

	WatermarkSeq     segment.Seq
	WatermarkSegment segment.ID
	Consumers        []segment.Consumer
	// TransitBytes and TransitSince describe standing slots that still owe a settle.
	TransitBytes int64
	TransitSince time.Time // seal time of the earliest; zero if none
	TrimJournal  uint64    // number of the next record under trims/
}

// TermRow says who wrote which part of a chain. First and Last are positions; zero
// until the term's first slot was absorbed.
type TermRow struct {
	segment.Chain
	Term        segment.Term
	Owner       segment.UUID
	First, Last segment.ID
	LastSeq     segment.Seq
}

// SlotRow is an absorbed slot.
type SlotRow struct {
	segment.Chain
	ID     segment.ID
	First  segment.Seq // base seq
	Next   segment.Seq // seq after its last row
	Bytes  int64       // of the object
	UUID   segment.UUID
	Prev   segment.UUID
	Digest uint64 // of the segment file
	Term   segment.Term
	Sealed time.Time
	Closed bool // the chain's last slot
	Void   bool
}

// Stream is one name for ever.
type Stream struct {
	ID       int64
	Name     string
	LiveFrom segment.Pos // first live position
	Last     segment.Pos // last absorbed row
	Deleted  bool        // for listing only; appending again goes on above
	Created  time.Time
}

// RefKind says what serves a span.
type RefKind string

// The kinds of refs. A kind that is none of these stops every deleting pass.
const (
	RefSlot   RefKind = "slot"
	RefStream RefKind = "stream"
	RefPack   RefKind = "pack"
	RefLost   RefKind = "lost" // proven lost and accepted; empty key
)

// Ref says which object serves rows First to Last (inclusive) of a stream.
type Ref struct {
	StreamID int64
	Stream   string
	segment.Chain
	First, Last segment.Seq
	// PrevLast is the stream's last row before First: zero Pos for the first ever.
	// A plan without holes links by it.
	PrevLast segment.Pos

	Key        string
	Kind       RefKind
	Class      segment.Class
	Revision   int32  // of the object; -1 for slots
	Generation uint32 // of a pack

	// Offset and Stored span the stream's chunks in the object. For a single chunk
	// Codec, CRC, Sum and Raw are its own, and no footer is needed to read it; with
	// Chunks > 1 the object's footer has the chunks.
	Chunks         uint32
	Offset, Stored int64
	Raw            int64
	Codec          segment.Codec
	CRC            uint32
	Sum            uint64

	// Rows, RowSum and Bytes (raw frame bytes) are those of rows First to Last, which
	// may be fewer than the chunk holds after a truncated commit.
	Rows             uint64
	RowSum           uint64
	Bytes            int64
	MinTime, MaxTime int64
}

// FirstPos is the position of the ref's first row.
func (r *Ref) FirstPos() segment.Pos { return segment.Pos{Epoch: r.Epoch, Seq: r.First} }

// LastPos is the position of the ref's last row.
func (r *Ref) LastPos() segment.Pos { return segment.Pos{Epoch: r.Epoch, Seq: r.Last} }

// Duty names a kind of marker.
type Duty string

// The duties.
const (
	DutySettle      Duty = "settle"       // id: SettleID(chain, segment)
	DutyPackMerge   Duty = "pack-merge"   // id: PackMergeID(chain, generation)
	DutyGC          Duty = "gc"           // id: object key
	DutyTailFill    Duty = "tail-fill"    // id: key of the tail object
	DutyReapCheck   Duty = "reap-check"   // id: object key
	DutyTrimCheck   Duty = "trim-check"   // id: ChainID(chain)
	DutyOrphan      Duty = "orphan"       // id: object key
	DutyReclaim     Duty = "reclaim"      // id: ChainID(chain)
	DutyTeardown    Duty = "teardown"     // id: StreamID(stream id)
	DutyAbsorbCheck Duty = "absorb-check" // no marker: it stands always
	DutySweep       Duty = "sweep"        // id: a chain's strays, or the buckets
)

// MarkerRef names a marker at a version: what a holder resolves or postpones.
type MarkerRef struct {
	Duty    Duty
	ID      string
	Version int64
}

// Marker is a durable due-date: this duty owes a look at this thing.
type Marker struct {
	MarkerRef
	Due        time.Time
	Class      segment.Class // of the object watched, if it is one
	Confirmed  bool          // reap-check: seen all dead once, one grace ago when due
	LeaseOwner string
	LeaseEnd   time.Time
	Attempts   int
	LastError  string
}

// IntentState is the life of an intent.
type IntentState string

// The states of an intent.
const (
	IntentStanding  IntentState = "standing"
	IntentCondemned IntentState = "condemned" // may be deleted at any moment; nobody commits it
	IntentBurned    IntentState = "burned"    // deleted; the key is never used again
)

// Intent stands before its object exists.
type Intent struct {
	Key       string
	Class     segment.Class
	Serves    string // the duty and id whose lease holder may take it over
	Nonce     string // of the job
	Uploads   []string
	Announced time.Time
	Deadline  time.Time // no completing request is sent after it
	State     IntentState
	Changed   time.Time // of the state
}

// AuditRow is what the system did or found.
type AuditRow struct {
	Seq     int64
	Time    time.Time
	Kind    string // "corruption", "fenced", "takeover", "void", "orphan", "damage" …
	Subject string
	Detail  string
}
