package catalog

import (
	"context"
	"time"

	"github.com/strandline/strandline/segment"
)

// Catalog is the whole of the verbs. Consumers declare the few they need as their
// own interface; this one is what an implementation provides and what cmd wires.
// Implementations are safe for concurrent use by goroutines and by processes.
type Catalog interface {
	Deployment
	Ownership
	Absorber
	Rewriter
	Judge
	Trimmer
	Markers
	Reader
	Inspector
	// Close waits for verbs under way.
	Close() error
}

// Deployment: settings, topology, the auditors' number.
type Deployment interface {
	// Now is the database's clock.
	Now(ctx context.Context) (time.Time, error)
	// Session is the one in which the catalog answers now (Within).
	Session(ctx context.Context) (Session, error)
	// Settings fails with ErrNotFound on a catalog that was never initialised.
	Settings(ctx context.Context) (Settings, error)
	// Init creates the settings row with this deployment id unless one stands, and
	// returns what stands.
	Init(ctx context.Context, deployment segment.UUID) (Settings, error)
	// SeedReadGrace and SeedOrphanGrace set a margin that nobody has set yet; a
	// seeded one is left and returned as it is.
	SeedReadGrace(ctx context.Context, d time.Duration) (Margin, error)
	SeedOrphanGrace(ctx context.Context, d time.Duration) (Margin, error)
	// SetReadGrace and SetOrphanGrace change a margin; the new value takes effect after one
	// old grace (SafetyMargin.Change). The value that stands is a no-op. ErrConflict while an
	// earlier change is not in force yet ("change under way").
	SetReadGrace(ctx context.Context, d time.Duration) (Margin, error)
	SetOrphanGrace(ctx context.Context, d time.Duration) (Margin, error)

	// EnsureTopology creates the epoch with its chain rows, or returns the one that
	// stands; one that differs in a constant is ErrConflict.
	EnsureTopology(ctx context.Context, t Topology) (Topology, error)
	Topologies(ctx context.Context) ([]Topology, error)
	// SetTopologyState moves an epoch's life one step: opening -> open (every chain of
	// every lower epoch is closed; its chains begin with InheritConsumers), open -> closing, closing -> open (nothing was closed
	// yet), closing -> closed (all its chains are closed). from that does not stand, and a
	// condition that does not hold, is ErrConflict.
	SetTopologyState(ctx context.Context, e segment.Epoch, from, to TopologyState) (Topology, error)
	// SetRetention replaces the retention of an epoch's chains. It takes effect with the
	// next run of retention; a watermark that was committed stays. Boundaries lie where slot
	// rows end: of what was trimmed while all was kept, one every full-size segment.
	SetRetention(ctx context.Context, e segment.Epoch, r Retention) (Topology, error)

	// RegisterAuditor renews the lease of an auditor and returns how many live.
	RegisterAuditor(ctx context.Context, id string, lease time.Duration) (live int, err error)
	// Audit appends to the audit table (bounded; oldest go first).
	Audit(ctx context.Context, kind, subject, detail string) error
}

// AuditKept is how many audit rows stay; at a few hundred bytes each they stay small
// beside the refs.
const AuditKept = 100_000
