package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/strandline/strandline/objstore"
)

// check is one thing to prove.
type check struct {
	name     string
	required bool
	proves   string
	breaks   string
	needs    []string // permissions
	// run ends with nil, with lacks, lies or skips, or with an error of the driver.
	run func(ctx context.Context, t *trial) error
	// lacks takes back a capability when the check ends as missing or denied; may be nil.
	lacks func(*objstore.Capabilities)
}

// checks are all of them, in the order of the table. The settings come first: a bucket that
// keeps versions is written to with care.
func checks() []check {
	return slices.Concat(
		settingsChecks(), clockChecks(), createOnceChecks(), completeChecks(), copyChecks(),
		rangeChecks(), integrityChecks(), listingChecks(), deleteChecks(),
	)
}

// verdict is a check's own end, as opposed to an error of the driver.
type verdict struct {
	outcome Outcome
	lie     bool
	text    string
}

func (v *verdict) Error() string { return v.text }

// lacks: the store says that it cannot.
func lacks(format string, args ...any) error {
	return &verdict{outcome: Missing, text: fmt.Sprintf(format, args...)}
}

// lies: the store answered success, and did otherwise.
func lies(format string, args ...any) error {
	return &verdict{outcome: Missing, lie: true, text: fmt.Sprintf(format, args...)}
}

// skips: not asked, and why.
func skips(format string, args ...any) error {
	return &verdict{outcome: Skipped, text: fmt.Sprintf(format, args...)}
}

// judge turns the end of a check into its outcome.
func judge(c check, err error) Result {
	r := Result{Check: c.name, Required: c.required, Outcome: OK, Proves: c.proves, Breaks: c.breaks, Permissions: c.needs}
	if err == nil {
		return r
	}
	r.Detail = err.Error()
	var v *verdict
	switch {
	case errors.As(err, &v):
		r.Outcome, r.Required = v.outcome, c.required || v.lie
	case errors.Is(err, objstore.ErrDenied):
		r.Outcome = Denied
	case errors.Is(err, objstore.ErrUnsupported), errors.Is(err, objstore.ErrInvalid):
		// It was asked rightly: other stores answer it.
		r.Outcome = Missing
	default:
		r.Outcome = Failed
	}
	return r
}

// refusedAs wants err to be of kind. Success in its place is a lie, told in words.
func refusedAs(err, kind error, success string) error {
	switch {
	case err == nil:
		return lies("%s", success)
	case errors.Is(err, kind):
		return nil
	default:
		return err
	}
}
