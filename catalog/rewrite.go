package catalog

import (
	"context"
	"time"

	"github.com/strandline/strandline/segment"
)

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
