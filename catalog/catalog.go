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
	// old grace (ChangeMargin). The value that stands is a no-op. ErrConflict while an
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

// Absorb is one slot on its way into the catalog.
type Absorb struct {
	Slot SlotRow
	// Key and Class of the slot's object; its refs carry them.
	Key   string
	Class segment.Class
	// Refs: one per chunk of the footer, in footer order; StreamID and PrevLast are
	// filled by the verb.
	Refs      []Ref
	Consumers []segment.Consumer
	// CallerOwner and CallerTerm are the chain owner's; Nil and zero for anyone else.
	CallerOwner segment.UUID
	CallerTerm  segment.Term
	// Void absorbs a slot that cannot pass the guards: only AbsorbedEnd moves.
	// Allowed to the present owner, or to anyone after the lease's end.
	Void   bool
	Reason string
}

// Absorbed is the outcome of an AbsorbSlot.
type Absorbed struct {
	Chain ChainRow
	// Already: this very slot had been absorbed before (no-op).
	Already  bool
	Inserted int // refs
	Dead     int // chunks wholly below the effective live_from, not inserted
}

// Absorber: published slot -> refs, settle marker, chain cursors (03 §2 step 3).
type Absorber interface {
	// AbsorbSlot checks every guard of 03 §2 step 3: position, term, seq continuity,
	// previous-UUID link. A slot below AbsorbedEnd is a no-op (Already) only for the
	// chain's present term and only if this very UUID and digest stood there and was
	// not void; else ErrFenced or ErrVoid. A slot above AbsorbedEnd is ErrConflict.
	// Its settle marker is armed in the same transaction, due at once.
	AbsorbSlot(ctx context.Context, a Absorb) (Absorbed, error)
}

// StandingSlot is a slot that owes a settle.
type StandingSlot struct {
	SlotRow
	Marker Marker
}

// MaxWindowRefs is how many live refs a window may hold before one more slot or pack
// begins in it. What a rewrite keeps in memory follows its refs, not its bytes: measured,
// some 3.4 kB a ref (refs, runs, sources, the commit), so 0.7 GB for these, and a slot has
// at most 50,000 streams more. Options of an implementation lower it for tests.
const MaxWindowRefs = 200_000

// MaxWindowSlots bounds a window of empty slots, which no bytes bound.
const MaxWindowSlots = 10_000

// AuditKept is how many audit rows stay; at a few hundred bytes each they stay small
// beside the refs.
const AuditKept = 100_000

// Window is a batch's worth of standing slots with the refs that name them.
type Window struct {
	Chain ChainRow
	Now   time.Time
	Slots []StandingSlot // consecutive, in order
	Refs  []Ref          // at or above live_from, by (stream, first)
	// LiveFrom is the effective one of every stream in Refs, by stream id.
	LiveFrom map[int64]segment.Pos
}

// Holder names who holds the lease of a marker or of a chain's duty.
type Holder struct {
	Duty  Duty
	ID    string
	Owner string
}

// Announce is an intent to be.
type Announce struct {
	Key      string
	Class    segment.Class
	Holder   Holder
	Nonce    string
	Deadline time.Duration // from now; the orphan judge comes no sooner
}

// Run is a stretch of one stream's refs, linked by PrevLast, that one output
// serves: New.First to New.Last replaces Expect, truncated at New.Last.
type Run struct {
	Expect []Ref
	// New has the output's placement (Key … Sum, MinTime, MaxTime) and, in Rows, RowSum and
	// Bytes, those of First to Last. Its PrevLast counts where it begins inside its first ref:
	// the row before First, which live_from cut off.
	New Ref
}

// Rewrite is a commit of the one mover.
type Rewrite struct {
	Key   string
	Nonce string
	Runs  []Run
	// Uploads that the job knows to be gone (completed or aborted).
	UploadsGone []string
	// Next is what the commit arms of the other policies.
	Next Next
}

// Next says which debts of the other policies a commit arms, in its own transaction
// and due at once. Its zero value arms none.
type Next struct {
	// TailTarget: for each committed ref to a stream object, the tail-fill of the object
	// before it, if TailFillDue says so.
	TailTarget int64
	// PackFan: the pack-merge of the output's chain and generation, if the output is a
	// pack and live refs name this many packs of that generation or more.
	PackFan int
}

// Rewritten is what a commit did.
type Rewritten struct {
	Committed []Ref // as they stand now
	Retired   int
	// Nothing is true if all expected refs were retired by a trim meanwhile: the
	// output is not named and its intent stays for the judge.
	Nothing bool
	// Already: refs named the key before (a lost reply).
	Already bool
}

// Rewriter: the rewrite commit protocol (03 §4).
type Rewriter interface {
	// LeaseDuty takes or renews the one lease of a duty on a chain; ErrConflict while
	// another holds it. ReleaseDuty ends it.
	LeaseDuty(ctx context.Context, h Holder, lease time.Duration) error
	ReleaseDuty(ctx context.Context, h Holder) error
	// Window returns the earliest run of consecutive slots whose settle markers stand
	// and are due, up to maxBytes (at least one), with their live refs. It ends before the
	// first slot whose live refs begin behind MaxWindowRefs others; the next window begins
	// there.
	Window(ctx context.Context, c segment.Chain, maxBytes int64) (Window, error)
	// Announce writes the intent and arms the orphan judge for it, one orphan grace
	// out and past its deadline. A standing intent of the same Holder.Duty and ID is taken over: new
	// nonce, new age, uploads kept. ErrConflict if a ref names the key, if it is condemned or
	// burned, if another holder's intent stands, or if the lease is not held: the caller derives
	// the next revision (Guard says which).
	Announce(ctx context.Context, a Announce) (Intent, error)
	// AddUpload and DropUpload keep the intent's upload ids; ErrConflict unless the
	// intent stands under this nonce.
	AddUpload(ctx context.Context, key, nonce, upload string) error
	DropUpload(ctx context.Context, key, nonce, upload string) error
	// CommitRewrite validates and swaps (03 §4 step 5), all runs or none: refs that a
	// trim retired meanwhile are left out; any other difference is ErrConflict. It arms the
	// reap-checks of settled sources one grace out, and resolves the intent if a ref now names the key
	// and no upload is left in it.
	CommitRewrite(ctx context.Context, r Rewrite) (Rewritten, error)
	// ResolveSettled resolves the settle markers (at their versions) of those slots
	// that no ref names any more, and arms the chain's trim-check one grace out in the same transaction.
	ResolveSettled(ctx context.Context, c segment.Chain, markers []MarkerRef) (resolved int, err error)
	// PackWindow returns the earliest packs of a chain's generation that live refs name, at
	// most packs of them, with all live refs that name them. It ends with the pack that
	// reaches MaxWindowRefs. A pack that reaches them by itself is as large as a pack may
	// be: it is passed over, and in no window.
	PackWindow(ctx context.Context, c segment.Chain, generation uint32, packs int) (PackWindow, error)
}

// PackWindow is what a pack-merge may take.
type PackWindow struct {
	Chain ChainRow
	Now   time.Time
	Packs []string // keys, in order of their first slots
	// Passed are those passed over, for they name MaxWindowRefs streams or more.
	Passed []string
	Refs   []Ref // at or above live_from, by (stream, first)
	// LiveFrom is the effective one of every stream in Refs, by stream id.
	LiveFrom map[int64]segment.Pos
}

// LiveRef is a ref that names a key, with its stream's effective live_from.
type LiveRef struct {
	Ref
	LiveFrom segment.Pos
}

// Verdict of CondemnIntent.
type Verdict string

// What CondemnIntent found.
const (
	Condemned Verdict = "condemned" // deletes may go on
	Named     Verdict = "named"     // a ref or a reap-check owns the object: intent resolved
	Gone      Verdict = "gone"      // no such intent any more
	NotYet    Verdict = "not yet"   // younger than the orphan grace, or before its deadline: left due then
)

// Judge: probe, two-phase reap, orphan judge (03 §5, §6, §8). A settled key dies
// only through condemned and burned.
type Judge interface {
	// Liveness returns all refs that name the key, one query.
	Liveness(ctx context.Context, key string) ([]LiveRef, error)
	// Confirm turns a reap-check into a confirmed one, due one read grace from now.
	// ErrConflict if the marker moved on from its version.
	Confirm(ctx context.Context, m MarkerRef) error
	// CondemnKey condemns a settled key on behalf of a confirmed reap-check: no ref
	// names it, no standing intent, the marker stands confirmed at its version; else ErrConflict.
	CondemnKey(ctx context.Context, m MarkerRef) error
	// BurnKey marks condemned keys as deleted, arms their last look (orphan duty) in 24 h, and
	// resolves every marker that watched them (reap-check, gc, tail-fill).
	BurnKey(ctx context.Context, keys []string) error

	Intent(ctx context.Context, key string) (Intent, error)
	// CondemnIntent is step 1 of the judge; m is the orphan marker it took. A condemned or burned intent
	// stays what it is and answers Condemned.
	CondemnIntent(ctx context.Context, m MarkerRef) (Verdict, Intent, error)
	// BurnIntent records that uploads and object are gone: the key is burned, its
	// last look is due in 24 h.
	BurnIntent(ctx context.Context, key string) error
	// RemoveIntent forgets a burned key if it can no longer be derived (03 §8 step 4);
	// otherwise its look is postponed and removed is false.
	RemoveIntent(ctx context.Context, key string) (removed bool, err error)
}

// TrimPlan is what AdvanceRewritten and DueSlots say of a chain.
type TrimPlan struct {
	Chain ChainRow
	Now   time.Time
	// Due: Condemned > Trimmed and a grace has passed since CondemnedAt.
	Due   bool
	Slots []SlotRow // in [Trimmed, Condemned), at most the limit asked
	Named []Ref     // refs that name any of them: must be empty
}

// WalkPage is one page of a teardown.
type WalkPage struct {
	Stream   Stream
	LiveFrom segment.Pos // as the stream's newest chain has it
	Dead     []Ref       // given up wholly, each by its own chain or by the stream, in order
	Straddle *Ref        // the ref across LiveFrom, with the last page
	More     bool
}

// Trimmer: trim-check, retention, stream trim and teardown (03 §7, §9).
type Trimmer interface {
	// RaiseWatermark commits what a chain gives up, monotonic, and arms its reclaim marker
	// at once in the same transaction. One at or below the standing watermark is a no-op.
	// ErrConflict: the term is not the planner's ("term"), the lease lives ("lease"), a
	// durable consumer of the row stands below ("consumer"), it reaches absorbed_end
	// ("absorbed_end"), or no slot ends there ("slot").
	RaiseWatermark(ctx context.Context, w Watermark) (ChainRow, error)
	// DeadRefs returns refs of the chain wholly at or below its watermark, in order of
	// their last rows. Retired ones (RetireRefs) are gone from the next call.
	DeadRefs(ctx context.Context, c segment.Chain, limit int) (refs []Ref, more bool, err error)
	// StraddlingRefs pages the settled refs that the chain's watermark cuts in two, by
	// (last, stream); after is the last one seen, nil to begin.
	StraddlingRefs(ctx context.Context, c segment.Chain, after *Ref, limit int) (refs []Ref, more bool, err error)

	// AdvanceRewritten is step 1 of the trim-check.
	AdvanceRewritten(ctx context.Context, c segment.Chain, consumerHoldMax int64) (ChainRow, error)
	// DueSlots is the look of step 2.
	DueSlots(ctx context.Context, c segment.Chain, limit int) (TrimPlan, error)
	// AdvanceTrim sets Trimmed from -> to (to <= Condemned) after the deletes; it
	// asserts again, in its transaction, that no ref names a slot below to and that the grace has passed.
	AdvanceTrim(ctx context.Context, c segment.Chain, from, to segment.ID) (ChainRow, error)
	// CondemnSlots is step 3: Condemned expect -> to with the database's time, and the
	// trim-check's marker due one grace out, in one transaction. Needs Trimmed = Condemned.
	CondemnSlots(ctx context.Context, m MarkerRef, c segment.Chain, expect, to segment.ID) (ChainRow, error)

	// TrimStream raises live_from to pos (never lowers it), arms the teardown.
	TrimStream(ctx context.Context, name string, pos segment.Pos) (Stream, error)
	// DeleteStream trims through the tip and lists the stream as deleted.
	DeleteStream(ctx context.Context, name string) (Stream, error)
	// WalkStream returns the next page of dead refs. The walk arms every watcher of a page
	// (ArmWatchers) before it retires any ref of it (RetireRefs).
	WalkStream(ctx context.Context, streamID int64, limit int) (WalkPage, error)
	// ArmWatchers arms, one grace out, the reap-check of settled keys, and makes the settle markers of
	// slots due.
	ArmWatchers(ctx context.Context, refs []Ref) error
	// RetireRefs deletes refs that stand unchanged (key, revision, last) and are
	// wholly below live_from; others are left. If a slot loses its last ref its settle marker is made due.
	RetireRefs(ctx context.Context, refs []Ref) (retired int, err error)
	// AcceptLoss is an operator's word that a span is lost for good (03 §4): the stream's
	// refs that name key become lost ones (LoseRef), the object's watcher is armed as by
	// ArmWatchers, and the audit table has it. For the key of a void slot that holds
	// rows, and no stream, its parked settle marker is resolved instead. ErrNotFound if
	// neither stands, as after a call whose answer was lost. It proves nothing: its caller has.
	AcceptLoss(ctx context.Context, key, stream string) (lost []Ref, err error)
	// AdvanceJournal moves the chain's TrimJournal from n to n+1.
	AdvanceJournal(ctx context.Context, c segment.Chain, n uint64) error
}

// Take asks for due markers.
type Take struct {
	Duties []Duty
	Owner  string
	Lease  time.Duration
	Limit  int
	// Ahead also takes markers due within this time (auditor --once uses it in tests).
	Ahead time.Duration
}

// Markers in general.
type Markers interface {
	// TakeDue leases due markers, earliest first. A lease that ran out is taken again.
	TakeDue(ctx context.Context, t Take) ([]Marker, error)
	// Arm creates the marker, or raises the version of the standing one; due is from now. A
	// standing reap-check loses its Confirmed; a standing trim-check keeps its due time.
	Arm(ctx context.Context, d Duty, id string, class segment.Class, in time.Duration) error
	// Resolve deletes the marker at its version; one that was armed meanwhile stays, due.
	Resolve(ctx context.Context, m MarkerRef) error
	// Postpone moves a marker at its version, counts an attempt if cause is not empty.
	Postpone(ctx context.Context, m MarkerRef, in time.Duration, cause string) error
	// Marker is the standing one of a duty and id; ErrNotFound if none stands.
	Marker(ctx context.Context, d Duty, id string) (Marker, error)
	// NextDue is the earliest due time over these duties; ok is false if none stands.
	NextDue(ctx context.Context, duties []Duty) (due time.Time, ok bool, err error)
}

// PlanRequest asks for the refs of a stream between two positions, inclusive.
type PlanRequest struct {
	Stream string
	From   segment.Pos // zero: from the first live row
	To     segment.Pos // zero: to the tip
	Limit  int         // refs
}

// Plan is the refs to read, in order.
type Plan struct {
	Stream Stream
	// LiveFrom is where reading begins: if From is zero, the first position that is left,
	// of whatever epoch; else From's own epoch's, and From is given up if it lies below.
	LiveFrom segment.Pos
	// Refs end at or above max(From, LiveFrom) and begin at or below To. Each has rows that
	// its own chain keeps; LiveIn its epoch says from where on.
	Refs []Ref
	More bool
	// Cuts are the epochs whose chain gave up more than the stream's own live_from does:
	// LiveIn and Linked look at them.
	Cuts map[segment.Epoch]segment.Pos
	// TTL is how long the plan may be relied on, from before the query was sent.
	TTL time.Duration
}

// Reader: what readers need.
type Reader interface {
	Stream(ctx context.Context, name string) (Stream, error)
	// Streams pages by name.
	Streams(ctx context.Context, after string, limit int) ([]Stream, error)
	Plan(ctx context.Context, r PlanRequest) (Plan, error)
	// Slots pages a chain's slots by position, from `from` on. Rows below Trimmed are of
	// slots that are gone: retention's ends, several slots to a row.
	Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]SlotRow, error)
	// ChainRefs returns refs of a chain whose Last >= from, by Last, for shard scans.
	// In the order of their ends: what else holds rows up to the last one's end, and ends
	// behind it, RefsAcross tells.
	ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) ([]Ref, error)
	// RefsAcross pages a chain's refs with First <= at < Last by (last, stream), one of a
	// stream at most; after is the last one seen, nil to begin.
	RefsAcross(ctx context.Context, c segment.Chain, at segment.Seq, after *Ref, limit int) (refs []Ref, more bool, err error)
}

// Status is the counts of the deployment.
type Status struct {
	Now      time.Time
	Settings Settings
	Streams  int64
	Deleted  int64
	Refs     map[RefKind]int64
	Markers  map[Duty]MarkerCount
	Intents  map[IntentState]int64
	Auditors int
}

// Debts is what is owed.
type Debts struct {
	Now     time.Time
	Markers map[Duty]MarkerCount
}

// MarkerCount of a duty.
type MarkerCount struct {
	Standing  int64
	Due       int64
	Oldest    time.Time // due time of the oldest
	Attempts  int64     // of those with errors
	LastError string
}

// Inspector: what fsck, status and explain need, in bounded pages.
type Inspector interface {
	// Status counts everything, at the cost of everything: for people and metrics.
	Status(ctx context.Context) (Status, error)
	// Debts is what Status says of markers, at the cost of what is owed, however many refs
	// stand: for those who ask again and again.
	Debts(ctx context.Context) (Debts, error)
	// RefsByKey pages all refs by (key, stream, first); after is the last one seen, nil to begin.
	RefsByKey(ctx context.Context, after *Ref, limit int) ([]LiveRef, error)
	MarkersOf(ctx context.Context, d Duty, afterID string, limit int) ([]Marker, error)
	Intents(ctx context.Context, afterKey string, limit int) ([]Intent, error)
	AuditRows(ctx context.Context, after int64, limit int) ([]AuditRow, error)
}
