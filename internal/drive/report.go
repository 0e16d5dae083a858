package drive

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Claim is one promise, and what speaks against it.
type Claim struct {
	Name string
	Err  error // nil: it holds
}

// Holds says whether nothing was found against it.
func (c Claim) Holds() bool { return c.Err == nil }

// Unjudged says that the claim was not put to the test: what speaks against it was found
// in a drive that was stopped, so it may only be what was never read.
func (r *Report) Unjudged(c Claim) bool { return r.Stopped != nil && !c.Holds() }

// Figure is a number that a drive met.
type Figure struct {
	Name  string
	Value int64
}

// Report is the outcome of a drive.
type Report struct {
	Drive   string
	Figures []Figure
	Claims  []Claim
	// Stopped is why the drive could not be finished; nil if it was.
	Stopped error
}

// Holds says whether the drive was finished and every claim holds.
func (r *Report) Holds() bool {
	for _, c := range r.Claims {
		if !c.Holds() {
			return false
		}
	}
	return r.Stopped == nil && len(r.Claims) > 0
}

// Divergence is the first thing that is not as it must be; nil if all is.
func (r *Report) Divergence() error {
	if r.Stopped != nil {
		return fmt.Errorf("the drive could not be finished: %w", r.Stopped)
	}
	for _, c := range r.Claims {
		if !c.Holds() {
			return fmt.Errorf("%s: %w", c.Name, c.Err)
		}
	}
	return nil
}

// MarshalJSON is one object: the drive, whether it holds, and in "report" the figures
// and a boolean a claim (null: not judged), in their order, and the divergence.
func (r *Report) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"drive":%q,"holds":%t,"report":{`, r.Drive, r.Holds())
	for _, f := range r.Figures {
		fmt.Fprintf(&b, "%q:%d,", f.Name, f.Value)
	}
	for _, c := range r.Claims {
		if r.Unjudged(c) {
			fmt.Fprintf(&b, "%q:null,", c.Name)
			continue
		}
		fmt.Fprintf(&b, "%q:%t,", c.Name, c.Holds())
	}
	divergence := []byte("null")
	if err := r.Divergence(); err != nil {
		var merr error
		if divergence, merr = json.Marshal(err.Error()); merr != nil {
			return nil, merr
		}
	}
	fmt.Fprintf(&b, `"divergence":%s}}`, divergence)
	return b.Bytes(), nil
}
