package catalog

import (
	"context"
	"time"

	"github.com/strandline/strandline/segment"
)

// Acquire asks for a chain.
type Acquire struct {
	segment.Chain
	Owner   segment.UUID
	Address string
	Lease   time.Duration
	// Expect is the term that the caller saw; the row goes to Expect+1.
	Expect segment.Term
	// Resume demands that the row's owner is Owner (03 §3 step 0). Without it, a
	// living lease of another owner is refused unless Steal.
	Resume bool
	Steal  bool
}

// Ownership of chains (03 §3).
type Ownership interface {
	// AcquireChain is a compare-and-set on the term. It records the term's owner in
	// the term table. Closed chains, and those of an epoch that is opening, refuse with
	// ErrConflict.
	AcquireChain(ctx context.Context, a Acquire) (ChainRow, error)
	// RenewChain extends the lease; ErrFenced if owner or term moved on.
	RenewChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term, lease time.Duration) (ChainRow, error)
	// ReleaseChain ends the lease only: the owner stays in the row.
	ReleaseChain(ctx context.Context, c segment.Chain, owner segment.UUID, term segment.Term) error
	Chain(ctx context.Context, c segment.Chain) (ChainRow, error)
	Chains(ctx context.Context) ([]ChainRow, error)
	Terms(ctx context.Context, c segment.Chain) ([]TermRow, error)
	// AckClosed moves a consumer's cursor on a closed chain, which has no owner any more:
	// the row is the truth there. Never back (a lower seq is a no-op), never beyond the
	// last row. ErrConflict while the chain is not closed, ErrNotFound without the
	// consumer. Arms the trim-check if the slowest moved.
	AckClosed(ctx context.Context, c segment.Chain, consumer string, seq segment.Seq) (ChainRow, error)
}
