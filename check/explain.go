package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// ErrNothing: there is nothing to explain; the error says what to do next.
var ErrNothing = errors.New("nothing to explain")

// ExplainCatalog is what an explanation reads.
type ExplainCatalog interface {
	Now(ctx context.Context) (time.Time, error)
	Settings(ctx context.Context) (catalog.Settings, error)
	Topologies(ctx context.Context) ([]catalog.Topology, error)
	Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error)
	Terms(ctx context.Context, c segment.Chain) ([]catalog.TermRow, error)
	Slots(ctx context.Context, c segment.Chain, from segment.ID, limit int) ([]catalog.SlotRow, error)
	Stream(ctx context.Context, name string) (catalog.Stream, error)
	Plan(ctx context.Context, r catalog.PlanRequest) (catalog.Plan, error)
	ChainRefs(ctx context.Context, c segment.Chain, from segment.Seq, limit int) ([]catalog.Ref, error)
	Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error)
	Intent(ctx context.Context, key string) (catalog.Intent, error)
	Intents(ctx context.Context, afterKey string, limit int) ([]catalog.Intent, error)
	Marker(ctx context.Context, d catalog.Duty, id string) (catalog.Marker, error)
	MarkersOf(ctx context.Context, d catalog.Duty, afterID string, limit int) ([]catalog.Marker, error)
	AuditRows(ctx context.Context, after int64, limit int) ([]catalog.AuditRow, error)
}

// Situation is what an explanation comes to. The words are part of the interface.
type Situation string

// The situations of keys and of rows.
const (
	IsLive       Situation = "live"           // served, or needed
	PartlyDead   Situation = "partly-dead"    // an object with live and dead bytes
	DeadNamed    Situation = "dead-named"     // every ref of it is dead; they are retired soon
	DeadWaiting  Situation = "dead"           // no ref; its graces run
	BeingMade    Situation = "being-made"     // a job's intent stands
	Abandoned    Situation = "abandoned"      // an intent past its deadline
	GoneBurned   Situation = "deleted"        // deleted by us; a key that is never used again
	LandedLate   Situation = "landed-late"    // an object under a burned key
	IsLeaked     Situation = "leaked"         // nothing watches it
	NotAbsorbed  Situation = "not-absorbed"   // a slot that is not history yet
	OwesSettle   Situation = "owes-settle"    // a slot whose rows are to be moved
	WaitsForTrim Situation = "waits-for-trim" // a slot whose rows were moved
	IsCondemned  Situation = "condemned"      // a slot whose last grace runs
	IsTrimmed    Situation = "trimmed"        // a slot, or a row, that was given up
	IsParked     Situation = "parked"         // a void slot that waits for a person
	IsRecord     Situation = "record"         // never deleted
	NotOurs      Situation = "unknown"        // of no shape of ours; never touched
	IsMissing    Situation = "missing"        // refs name what is not there: damage
	IsDamaged    Situation = "damaged"        // it is not what was put there
	IsUnreadable Situation = "unreadable"     // it is there, and reads of it do not complete
	IsLost       Situation = "lost"           // accepted as lost by an operator
	IsDeleted    Situation = "stream-deleted" // a row of a deleted stream
	BeyondTip    Situation = "beyond-tip"     // no such row yet
	NoRow        Situation = "no-row"         // the seq is another stream's
	IsForked     Situation = "forked"         // the token's history did not go on
)

// Bad says whether the situation is one that fsck calls damage.
func (s Situation) Bad() bool { return s == IsMissing || s == IsDamaged }

// Explanation is what a tired operator reads. Its fields are part of the interface.
type Explanation struct {
	Subject   string    `json:"subject"`
	Kind      string    `json:"kind"` // a kind of key as segment names it, "unknown" or "row"
	Situation Situation `json:"situation"`
	Summary   string    `json:"summary"`
	Why       []string  `json:"why"`
	// Next is what happens next and when, or what to do.
	Next []string `json:"next"`
	// Facts of a key or of a row that the sentences are made of.
	Key *KeyFacts `json:"key,omitempty"`
	Row *RowFacts `json:"row,omitempty"`
}

func (e *Explanation) is(s Situation, format string, args ...any) {
	e.Situation, e.Summary = s, fmt.Sprintf(format, args...)
}

func (e *Explanation) why(format string, args ...any) {
	e.Why = append(e.Why, fmt.Sprintf(format, args...))
}

func (e *Explanation) next(format string, args ...any) {
	e.Next = append(e.Next, fmt.Sprintf(format, args...))
}

// Text is the explanation on a terminal.
func (e *Explanation) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s: %s\n", e.Subject, e.Situation, e.Summary)
	for _, part := range []struct {
		head  string
		lines []string
	}{{"why", e.Why}, {"next", e.Next}} {
		for i, line := range part.lines {
			if i == 0 {
				fmt.Fprintf(&b, "\n%s\n", part.head)
			}
			fmt.Fprintf(&b, "  - %s\n", line)
		}
	}
	return b.String()
}

// Copy is what one bucket says of a key.
type Copy struct {
	Class    string    `json:"class"`
	Bucket   string    `json:"bucket"`
	Deciding bool      `json:"deciding"`
	Exists   bool      `json:"exists"`
	Bytes    int64     `json:"bytes,omitempty"`
	Put      time.Time `json:"put,omitzero"`
	// Broken says why it is no object of ours, if it is none.
	Broken string `json:"broken,omitempty"`
	// Unread says why its bytes could not be read, if they could not: no verdict on them.
	Unread string `json:"unread,omitempty"`
}

// RefFact is a ref that names a key.
type RefFact struct {
	Stream   string        `json:"stream"`
	Epoch    segment.Epoch `json:"epoch"`
	First    segment.Seq   `json:"first"`
	Last     segment.Seq   `json:"last"`
	Rows     uint64        `json:"rows"`
	Bytes    int64         `json:"bytes"`
	Kind     string        `json:"kind"`
	Key      string        `json:"key,omitempty"`
	Revision int32         `json:"revision"`
	Dead     bool          `json:"dead"`
	LiveFrom segment.Pos   `json:"live_from"`
	// Trouble says why its object does not serve it, if it does not.
	Trouble string `json:"trouble,omitempty"`
}

func refFact(r *catalog.Ref, liveFrom segment.Pos) RefFact {
	return RefFact{
		Stream: r.Stream, Epoch: r.Epoch, First: r.First, Last: r.Last, Rows: r.Rows, Bytes: r.Bytes, Kind: string(r.Kind),
		Key: r.Key, Revision: r.Revision, Dead: r.Dead(liveFrom), LiveFrom: liveFrom,
	}
}

// IntentFact is an intent.
type IntentFact struct {
	State     string    `json:"state"`
	Serves    string    `json:"serves"`
	Announced time.Time `json:"announced"`
	Deadline  time.Time `json:"deadline"`
	Changed   time.Time `json:"changed"`
	JudgedAt  time.Time `json:"judged_at"`
	Uploads   int       `json:"uploads"`
}

// MarkerFact is a marker that stands.
type MarkerFact struct {
	Duty      catalog.Duty `json:"duty"`
	ID        string       `json:"id"`
	Due       time.Time    `json:"due"`
	Confirmed bool         `json:"confirmed,omitempty"`
	Holder    string       `json:"holder,omitempty"`
	HeldUntil time.Time    `json:"held_until,omitzero"`
	Attempts  int          `json:"attempts,omitempty"`
	LastError string       `json:"last_error,omitempty"`
}

func markerFact(m *catalog.Marker) *MarkerFact {
	return &MarkerFact{
		Duty: m.Duty, ID: m.ID, Due: m.Due, Confirmed: m.Confirmed, Holder: m.LeaseOwner, HeldUntil: m.LeaseEnd,
		Attempts: m.Attempts, LastError: m.LastError,
	}
}

// when says when a duty looks, and what went wrong before.
func (m *MarkerFact) when(now time.Time) string {
	s := "due " + relative(now, m.Due)
	if now.Before(m.HeldUntil) && m.Holder != "" {
		s += fmt.Sprintf(", held by auditor %s until %s", m.Holder, relative(now, m.HeldUntil))
	}
	if m.LastError != "" {
		s += fmt.Sprintf("; tried %d times, backing off, the last error was: %s", m.Attempts, m.LastError)
	}
	return s
}
