package doctor

import (
	"time"

	"github.com/strandline/strandline/objstore"
)

// Outcome is how a check ended.
type Outcome string

// The outcomes. Only Missing is proof that the store cannot do it.
const (
	OK      Outcome = "ok"
	Missing Outcome = "missing" // the store refused it, or answered success and did otherwise
	Failed  Outcome = "failed"  // no verdict: an outage, a time-out, an unknown outcome
	Denied  Outcome = "denied"  // the credentials may not do it
	Skipped Outcome = "skipped" // not asked; the detail says why
)

// Result is one check and how it ended.
type Result struct {
	Check string `json:"check"`
	// Required: Strandline must not run without it. A store that lies about an optional
	// one makes it required.
	Required bool    `json:"required"`
	Outcome  Outcome `json:"outcome"`
	Proves   string  `json:"proves"`
	Breaks   string  `json:"breaks"` // what goes wrong without it
	// Permissions are the actions that the check needs, in the words of S3's policies.
	Permissions []string `json:"permissions,omitempty"`
	Detail      string   `json:"detail,omitempty"`
	Requests    int64    `json:"requests"`
}

// Holds says whether nothing stands in the way of running: an optional check never does,
// and a skipped one is of something that is not relied on.
func (r Result) Holds() bool { return !r.Required || r.Outcome == OK || r.Outcome == Skipped }

// Report is what a run saw.
type Report struct {
	Store   string   `json:"store"`
	Results []Result `json:"checks"`
	// Capabilities are the driver's, narrowed by what was seen; see objstore.Store.Narrow.
	Capabilities objstore.Capabilities `json:"-"`
	Requests     map[objstore.Op]int64 `json:"requests"`
	Swept        int                   `json:"swept"` // leftovers of earlier runs that were removed
	Left         []string              `json:"left"`  // what this run could not remove; a later run will
	Took         time.Duration         `json:"-"`
	declared     objstore.Capabilities // before narrowing
}

// Declared are the driver's own capabilities.
func (r Report) Declared() objstore.Capabilities { return r.declared }

// OK says whether every required check holds.
func (r Report) OK() bool {
	for _, res := range r.Results {
		if !res.Holds() {
			return false
		}
	}
	return true
}

// Refused are the required checks that the store was proven to fail.
func (r Report) Refused() []Result {
	return r.only(func(res Result) bool { return res.Required && res.Outcome == Missing })
}

// Unproven are all checks that ended neither well, nor skipped, nor with a refusal: what
// a start warns of.
func (r Report) Unproven() []Result {
	return r.only(func(res Result) bool {
		return res.Outcome == Failed || res.Outcome == Denied || res.Outcome == Missing && !res.Required
	})
}

// Find gives the result of a check.
func (r Report) Find(check string) (Result, bool) {
	for _, res := range r.Results {
		if res.Check == check {
			return res, true
		}
	}
	return Result{}, false
}

// Total is the number of requests.
func (r Report) Total() int64 {
	var n int64
	for _, v := range r.Requests {
		n += v
	}
	return n
}

func (r Report) only(want func(Result) bool) []Result {
	var out []Result
	for _, res := range r.Results {
		if want(res) {
			out = append(out, res)
		}
	}
	return out
}
