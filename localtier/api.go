package localtier

import (
	"context"
	"log/slog"
	"time"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Ack is what an append waits for.
type Ack string

// The acknowledgements.
const (
	AckDefault Ack = ""       // Config.Ack
	AckLocal   Ack = "local"  // fsynced on this disk
	AckShared  Ack = "shared" // published and absorbed
)

// Catalog is what a writer needs of one.
type Catalog interface {
	absorb.Catalog
	AcquireChain(ctx context.Context, a catalog.Acquire) (catalog.ChainRow, error)
	RenewChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term, lease time.Duration) (catalog.ChainRow, error)
	ReleaseChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term) error
	// Terms and Slots prove what of a directory the chain has.
	Terms(ctx context.Context, c segment.Chain) ([]catalog.TermRow, error)
	Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error)
	// Topologies says when the epoch is over, and its retention.
	Topologies(ctx context.Context) ([]catalog.Topology, error)
	RaiseWatermark(ctx context.Context, w catalog.Watermark) (catalog.ChainRow, error)
	Session(ctx context.Context) (catalog.Session, error)
	Now(ctx context.Context) (time.Time, error)
}

// Options are a Writer's dependencies.
type Options struct {
	// Dir holds a directory for each shard; made if missing.
	Dir     string
	Catalog Catalog
	Classes objstore.Classes
	// Topology is the open epoch; its class names the bucket set.
	Topology catalog.Topology
	// Shards to own; nil for all of the topology.
	Shards []segment.Shard
	// Address is where clients reach this writer; others are told it.
	Address string
	// Steal takes chains whose owner's lease still lives.
	Steal  bool
	Config Config
	Logger *slog.Logger     // nil: none
	Now    func() time.Time // nil: time.Now
	// Trace begins a step of an append or a publish, and returns the context of what it is
	// made of and its end; nil: nothing is traced.
	Trace func(ctx context.Context, t Traced) (context.Context, func(error))
	// Cut is asked at every step; an error stops the shard there as a crash would.
	// For tests and the simulator; nil otherwise.
	Cut func(Step) error
}

// Step names a crash point of this package.
type Step string

// The crash points, in their order.
const (
	StepAcquired     Step = "acquired"            // the term is taken, nothing else
	StepTakenBack    Step = "taken back"          // what stood is absorbed, not looked at again
	StepLetGo        Step = "let go"              // the lease is given back, the directory to be set aside
	StepSetAside     Step = "set aside"           // the directory is in quarantine, no other is made
	StepJudged       Step = "judged"              // the verdict is written, nothing removed
	StepFencePlaced  Step = "fence placed"        // the fence stands, not absorbed
	StepFenced       Step = "fenced"              // absorbed; no segment of the term yet
	StepBuilt        Step = "bundle built"        // nothing sent
	StepSent         Step = "body sent"           // all but the request that publishes
	StepPlaced       Step = "slot placed"         // the slot stands; the answer is lost with us
	StepAbsorbed     Step = "slot absorbed"       // nothing local knows yet
	StepCheckpointed Step = "checkpoint written"  // housekeeping not done
	StepFetched      Step = "slot fetched"        // hydrate: restored, not adopted
	StepHydrated     Step = "segment hydrated"    // adopted
	StepPlanned      Step = "retention planned"   // nothing committed
	StepWatermark    Step = "watermark committed" // nothing given up here yet
	StepReclaimed    Step = "reclaimed"
)

// Result is where the rows of an append stand. A reader's token is (Epoch, Term, seq).
type Result struct {
	Epoch segment.Epoch
	Shard segment.Shard
	Term  segment.Term
	First segment.Seq
	Last  segment.Seq
}

// State of a shard.
type State string

// The states of a shard.
const (
	StateServing   State = "serving"
	StateLeaseLost State = "lease lost" // appends are refused until the catalog answers
	StateFenced    State = "fenced"
	StateHalted    State = "halted" // poisoned log or damage
	StateClosed    State = "closed"
)

// ShardStatus is one shard at a glance.
type ShardStatus struct {
	Chain    segment.Chain
	State    State
	Dir      string
	Owner    segment.UUID
	Term     segment.Term
	NextSeq  segment.Seq
	Position segment.ID // of the next slot: absorbed_end
	// Unpublished: sealed and open segments that the shared tier does not hold.
	UnpublishedSegments int
	UnpublishedBytes    int64
	UnflushedBytes      int64
	LeaseEnd            time.Time // by this process's clock
	// Hydrated of HydrateTotal slots came back from the bucket; equal once that is done.
	Hydrated, HydrateTotal int
	LastError              string // of the publisher or the lease; empty after a success
	LastErrorAt            time.Time
	LastAbsorbed           time.Time
	// Unabsorbed are the durable rows here that no absorbed slot has, UnabsorbedSince the seal of
	// the first segment of them; zero: they are in the open one, or there are none.
	Unabsorbed      uint64
	UnabsorbedSince time.Time
	// Row is the chain's row as this owner saw it last: at an absorb or a renewal.
	Row catalog.ChainRow
	// Behind is the seal of the local segment that the slowest consumer has yet to read
	// first; zero: it has read all that is sealed. It is no older than what is local.
	Behind    time.Time
	Owed      int              // copies of slots that buckets of the set still miss
	Corrupt   int64            // finds of damage in local files since the start
	Log       wal.Metrics      // frames, bytes, fsyncs … since it was opened
	Consumers []ConsumerStatus // by name
}
