package catalog

import (
	"context"
	"time"

	"github.com/strandline/strandline/segment"
)

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
