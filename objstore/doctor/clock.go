package doctor

import (
	"context"
	"time"
)

const (
	// maxSkew is S3's own limit: beyond it, every request is refused as not signed now.
	maxSkew = 15 * time.Minute
	// closeSkew is far above what a synchronised clock shows, and far below any grace.
	closeSkew = 5 * time.Second
	// dateStep: the store's Date header has whole seconds.
	dateStep = time.Second
)

func clockChecks() []check {
	return []check{
		{
			name: "clock", required: true, run: clockWithin(maxSkew),
			proves: "this machine's clock and the store's differ by less than 15 minutes",
			breaks: "S3 refuses every request: 403 RequestTimeTooSkewed",
		},
		{
			name: "clock-close", run: clockWithin(closeSkew),
			proves: "this machine's clock and the store's differ by less than 5 seconds",
			breaks: "ages in logs and status are off; no delete depends on it (graces go by the catalog's clock)",
		},
	}
}

func clockWithin(limit time.Duration) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		got, err := t.ask(ctx)
		if err != nil {
			return err
		}
		if got.Date.IsZero() {
			return skips("the store's answers carry no date")
		}
		skew := skewOf(got.Date, t.settings.before, t.settings.after)
		if skew.Abs() >= limit {
			way := "behind"
			if skew < 0 {
				way = "ahead of"
			}
			return lacks("this machine's clock is %v %s the store's: set the clock", skew.Abs().Round(time.Second), way)
		}
		t.detail = "difference " + skew.Abs().Round(10*time.Millisecond).String()
		return nil
	}
}

// skewOf is how far the store's date lies outside the time in which it was asked for;
// positive: the store is ahead.
func skewOf(date, before, after time.Time) time.Duration {
	switch {
	case date.After(after):
		return date.Sub(after)
	case date.Add(dateStep).Before(before):
		return date.Add(dateStep).Sub(before) // negative
	default:
		return 0
	}
}
