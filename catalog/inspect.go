package catalog

import (
	"context"
	"time"
)

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
