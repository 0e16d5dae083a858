package check

import (
	"fmt"
	"time"
)

// span is a time in two units at most, as people say it at night.
func spanText(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than a second"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return two(int64(d/time.Minute), "m", int64(d%time.Minute/time.Second), "s")
	case d < 48*time.Hour:
		return two(int64(d/time.Hour), "h", int64(d%time.Hour/time.Minute), "m")
	case d < 10*365*24*time.Hour:
		return two(int64(d/(24*time.Hour)), "d", int64(d%(24*time.Hour)/time.Hour), "h")
	}
	return "years"
}

func two(a int64, unit string, b int64, less string) string {
	if b == 0 {
		return fmt.Sprintf("%d%s", a, unit)
	}
	return fmt.Sprintf("%d%s%d%s", a, unit, b, less)
}

// relative is a time as seen from now.
func relative(now, at time.Time) string {
	switch d := at.Sub(now); {
	case d >= time.Second:
		return "in " + spanText(d)
	case d > -time.Second:
		return "now"
	default:
		return spanText(-d) + " ago"
	}
}
