package catalog

import (
	"fmt"
	"time"

	"github.com/strandline/strandline/segment"
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

// SafetyMargin is one of the margins: its name, the least that it may be set to, and where
// it stands in the settings.
type SafetyMargin struct {
	Name  string
	Least time.Duration
	Of    func(*Settings) *Margin
}

// ReadGraceMargin is what readers rely on.
func ReadGraceMargin() SafetyMargin {
	return SafetyMargin{"read-grace", LeastReadGrace, func(s *Settings) *Margin { return &s.ReadGrace }}
}

// OrphanGraceMargin is what jobs rely on.
func OrphanGraceMargin() SafetyMargin {
	return SafetyMargin{"orphan-grace", LeastOrphanGrace, func(s *Settings) *Margin { return &s.OrphanGrace }}
}

// MarginOf is the margin of a name in settings, nil if none has it.
func (s *Settings) MarginOf(name string) *Margin {
	for _, k := range []SafetyMargin{ReadGraceMargin(), OrphanGraceMargin()} {
		if k.Name == name {
			return k.Of(s)
		}
	}
	return nil
}

// SeedMargin is a margin that nobody had set. It is in force at once: deleters waited the default
// until now, and readers relied on the least.
func SeedMargin(v time.Duration, now time.Time) Margin {
	return Margin{Seeded: true, Value: v, Old: v, Effective: now}
}

// ValidateSeed checks a margin's first value.
func (k SafetyMargin) ValidateSeed(v time.Duration) error {
	if v < k.Least {
		return Invalid("Seed", "%s of %v is below the least, %v", k.Name, v, k.Least)
	}
	return nil
}

// Change is the margin in the settings after an operator set it to v.
func (k SafetyMargin) Change(s *Settings, v time.Duration, now time.Time) (Margin, error) {
	return k.change(*k.Of(s), v, now)
}

// Initialised: a deployment was named; what to do if none was.
func (s *Settings) Initialised() error {
	if s.Deployment == (segment.UUID{}) {
		return fmt.Errorf("%w: this catalog was never initialised; start a writer or `strandline up`, which founds a deployment in it", ErrNotFound)
	}
	return nil
}

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

// change is the margin m after an operator set it to v. Until one old grace has
// passed both values count, each side going by the careful one: a plan made before the
// change is over by then, and so is every wait that began before it. One that nobody had
// set is seeded. A second change waits until the first is in force, or the two of them
// would have three values to mind.
func (k SafetyMargin) change(m Margin, v time.Duration, now time.Time) (Margin, error) {
	verb := "Set " + k.Name
	switch {
	case v < k.Least:
		return m, Invalid(verb, "%v is below the least, %v", v, k.Least)
	case !m.Seeded:
		return SeedMargin(v, now), nil
	case v == m.Value:
		return m, nil
	case now.Before(m.Effective):
		return m, Conflict(verb, "change under way", "none",
			fmt.Sprintf("%v follows %v at %s: try again then", m.Value, m.Old, m.Effective.Format(time.RFC3339)))
	}
	return Margin{Seeded: true, Value: v, Old: m.Value, Effective: now.Add(m.Value)}, nil
}
