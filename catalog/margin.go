package catalog

import (
	"fmt"
	"time"
)

// Bounds and defaults of the safety margins. The least is what readers rely on
// while nobody has set a margin; the default is what deleters wait meanwhile.
const (
	DefaultReadGrace   = 10 * time.Minute
	LeastReadGrace     = time.Second
	DefaultOrphanGrace = time.Hour
	LeastOrphanGrace   = 5 * time.Second
	// BurnDelay is how long after a delete a request sent before it may still land.
	BurnDelay = 24 * time.Hour
)

// Deleting is the margin that whoever deletes has to wait.
func (m Margin) Deleting(now time.Time, dflt time.Duration) time.Duration {
	if !m.Seeded {
		return dflt
	}
	if now.Before(m.Effective) {
		return max(m.Value, m.Old)
	}
	return m.Value
}

// Reading is the margin that readers may rely on.
func (m Margin) Reading(now time.Time, least time.Duration) time.Duration {
	if !m.Seeded {
		return least
	}
	if now.Before(m.Effective) {
		return min(m.Value, m.Old)
	}
	return m.Value
}

// PlanTTL is how long a plan may be relied on: half of what readers may.
func (s Settings) PlanTTL(now time.Time) time.Duration {
	return s.ReadGrace.Reading(now, LeastReadGrace) / 2
}

// ChangeMargin is the margin m after an operator set it to v. Until one old grace has
// passed both values count, each side going by the careful one: a plan made before the
// change is over by then, and so is every wait that began before it. One that nobody had
// set is seeded. A second change waits until the first is in force, or the two of them
// would have three values to mind.
func ChangeMargin(verb string, m Margin, v, least time.Duration, now time.Time) (Margin, error) {
	switch {
	case v < least:
		return m, Invalid(verb, "%v is below the least, %v", v, least)
	case !m.Seeded:
		return Margin{Seeded: true, Value: v, Old: v, Effective: now}, nil
	case v == m.Value:
		return m, nil
	case now.Before(m.Effective):
		return m, Conflict(verb, "change under way", "none",
			fmt.Sprintf("%v follows %v at %s: try again then", m.Value, m.Old, m.Effective.Format(time.RFC3339)))
	}
	return Margin{Seeded: true, Value: v, Old: m.Value, Effective: now.Add(m.Value)}, nil
}
