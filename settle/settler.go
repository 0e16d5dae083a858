package settle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Catalog is what settling asks of the catalog, by guarantee.
type Catalog interface {
	Leases
	Duty
	Debts
	Outputs
	Records
}

// Leases keep two settlers from doing the same work; safety does not rest on them.
type Leases interface {
	LeaseDuty(ctx context.Context, h catalog.Holder, lease time.Duration) error
	ReleaseDuty(ctx context.Context, h catalog.Holder) error
}

// Duty is the work owed and what became of it.
type Duty interface {
	Window(ctx context.Context, c segment.Chain, maxBytes int64) (catalog.Window, error)
	ResolveSettled(ctx context.Context, c segment.Chain, markers []catalog.MarkerRef) (int, error)
	Postpone(ctx context.Context, m catalog.MarkerRef, in time.Duration, cause string) error
}

// Debts are the markers of the other policies, and what they look at.
type Debts interface {
	// Liveness and Plan: a gc's object, a tail object and what follows it.
	Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error)
	Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error)
	PackWindow(ctx context.Context, c segment.Chain, generation uint32, packs int) (catalog.PackWindow, error)
	Arm(ctx context.Context, d catalog.Duty, id string, class segment.Class, in time.Duration) error
	Resolve(ctx context.Context, m catalog.MarkerRef) error
}

// Outputs are the mover's verbs (03 §4 steps 1 and 5).
type Outputs interface {
	Announce(ctx context.Context, a catalog.Announce) (catalog.Intent, error)
	AddUpload(ctx context.Context, key, nonce, upload string) error
	DropUpload(ctx context.Context, key, nonce, upload string) error
	CommitRewrite(ctx context.Context, r catalog.Rewrite) (catalog.Rewritten, error)
}

// Records: the database's clock, the safety margins, and what an operator must hear of.
type Records interface {
	Now(ctx context.Context) (time.Time, error)
	Settings(ctx context.Context) (catalog.Settings, error)
	Audit(ctx context.Context, kind, subject, detail string) error
}

// Deps are what a Settler works with. Clock, NewNonce and NewUUID have no
// defaults: a test pins them, cmd wires them.
type Deps struct {
	Catalog  Catalog
	Classes  objstore.Classes
	Clock    func() time.Time
	Logger   *slog.Logger
	NewNonce func() string       // names a job; never the same twice
	NewUUID  func() segment.UUID // identity of an output
	Budget   Budget              // nil: no bound
	// Trace begins a job, an output object, and returns the context that it runs under and
	// its end; nil: nothing is traced.
	Trace func(ctx context.Context, key string) (context.Context, func(Traced))
}

// Settler settles chains. It is safe for concurrent use; one chain is worked on by
// one caller at a time, whoever holds its lease.
type Settler struct {
	Deps
	cfg Config
}

// New checks and wires.
func New(d Deps, cfg Config) (*Settler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if d.Catalog == nil || d.Clock == nil || d.Logger == nil || d.NewNonce == nil || d.NewUUID == nil {
		return nil, errors.New("settle: Deps has a nil field: give all of them")
	}
	if _, err := d.Classes.Set(string(segment.ClassStandard)); err != nil {
		return nil, fmt.Errorf("settle: outputs are of class %s: %w", segment.ClassStandard, err)
	}
	return &Settler{Deps: d, cfg: cfg.withDefaults()}, nil
}

// Failure is a member that was left out of its output.
type Failure struct {
	Stream string
	Err    error
}

// Report is what one batch did.
type Report struct {
	Idle        string // why nothing was done; empty if something was
	Slots       int    // in the batch
	Resolved    int    // whose duty is done
	Rows        uint64
	RawBytes    int64 // of the rows' frames
	StoredBytes int64 // of the outputs, footers included
	Through     int64 // bytes sent through this process
	ServerSide  int64 // bytes copied within the store
	Outputs     int
	Lost        int // outputs described from another job's object
	Failures    []Failure
	// Requests are those of the stores used, by operation, during the batch. Other
	// users of the same Stores at the same time are counted with it.
	Requests objstore.Counters
}

// RunOnce settles one batch of a chain as owner. It ends with Report.Idle where
// there was nothing to do: the caller runs it until then. Members that fail are in
// Report.Failures, their slots' markers postponed; an error is for a pass that
// could not go on (catalog away, lease lost, ctx ended), and the next one
// converges from wherever it stopped.
func (s *Settler) RunOnce(ctx context.Context, chain segment.Chain, owner string) (Report, error) {
	holder := catalog.Holder{Duty: catalog.DutySettle, ID: catalog.ChainID(chain), Owner: owner}
	// A look at the earliest slot costs an idle chain no write.
	if _, idle, err := s.look(ctx, chain, 1, holder); err != nil || idle != "" {
		return Report{Idle: idle}, err
	}
	lease := &lease{cat: s.Catalog, holder: holder, length: s.cfg.Lease, clock: s.Clock}
	if err := lease.take(ctx); err != nil {
		if errors.Is(err, errLeaseLost) {
			return Report{Idle: IdleLease}, nil
		}
		return Report{}, fmt.Errorf("settle %s: take the lease: %w", chain, err)
	}
	rep, err := s.batch(ctx, chain, lease)
	// A crash before the release leaves the chain to nobody for one lease.
	return rep, errors.Join(err, lease.release(ctx))
}

// look reads a window and plans it.
func (s *Settler) look(ctx context.Context, chain segment.Chain, maxBytes int64, holder catalog.Holder) (batch, string, error) {
	w, err := s.Catalog.Window(ctx, chain, maxBytes)
	if err != nil {
		return batch{}, "", fmt.Errorf("settle %s: read the window: %w", chain, err)
	}
	b, idle := plan(&w, s.cfg, holder)
	return b, idle, nil
}

// batch runs one batch under the lease.
func (s *Settler) batch(ctx context.Context, chain segment.Chain, lease *lease) (Report, error) {
	before := s.counters()
	deadline, err := s.jobDeadline(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("settle %s: read the safety margins: %w", chain, err)
	}
	b, idle, err := s.look(ctx, chain, s.bound(deadline), lease.holder)
	if err != nil || idle != "" {
		return Report{Idle: idle}, err
	}
	rep := Report{Slots: len(b.slots)}
	outs, err := s.move(ctx, b, deadline, lease)
	for _, o := range outs {
		rep.add(o)
	}
	if err == nil {
		rep.Resolved, err = s.resolve(ctx, chain, b.slots, outs)
	}
	rep.Requests = s.counters().Sub(before)
	if err != nil {
		return rep, fmt.Errorf("settle %s: %w", chain, err)
	}
	s.Logger.Info("settled a batch", "chain", chain.String(), "slots", rep.Slots, "resolved", rep.Resolved,
		"rows", rep.Rows, "raw_bytes", rep.RawBytes, "stored_bytes", rep.StoredBytes, "outputs", rep.Outputs,
		"members_failed", len(rep.Failures))
	return rep, nil
}

// jobDeadline is how long a job may take from its announce: half of the shortest
// grace that the judge may go by meanwhile.
func (s *Settler) jobDeadline(ctx context.Context) (time.Duration, error) {
	settings, err := s.Catalog.Settings(ctx)
	if err != nil {
		return 0, err
	}
	now, err := s.Catalog.Now(ctx)
	return settings.OrphanGrace.Reading(now, catalog.DefaultOrphanGrace) / 2, err
}

func (r *Report) add(o *outcome) {
	for _, ref := range o.moved {
		r.Rows += ref.Rows
		r.RawBytes += ref.Bytes
	}
	if len(o.moved) > 0 {
		r.Outputs++
		r.StoredBytes += o.size
	}
	if o.lost {
		r.Lost++
	}
	r.Through += o.through
	r.ServerSide += o.serverSide
	for _, f := range o.failed {
		r.Failures = append(r.Failures, Failure{f.member.stream, f.err})
	}
}

// counters sums the requests of every store of every class.
func (s *Settler) counters() objstore.Counters { return s.requests() }

func (s *Deps) requests() objstore.Counters {
	sum := objstore.Counters{Requests: map[objstore.Op]int64{}, Errors: map[objstore.Op]int64{}}
	seen := make(map[*objstore.Store]bool)
	for _, class := range slices.Sorted(maps.Keys(s.Classes)) {
		for _, store := range s.Classes[class] {
			if seen[store] {
				continue
			}
			seen[store] = true
			c := store.Counters()
			for op, n := range c.Requests {
				sum.Requests[op] += n
				sum.Errors[op] += c.Errors[op]
			}
			sum.BytesIn += c.BytesIn
			sum.BytesOut += c.BytesOut
			sum.BytesCopied += c.BytesCopied
		}
	}
	return sum
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func sortRefs(refs []catalog.Ref) {
	slices.SortFunc(refs, func(a, b catalog.Ref) int { return a.FirstPos().Compare(b.FirstPos()) })
}
