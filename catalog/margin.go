package catalog

import "time"

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
