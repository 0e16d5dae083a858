package catalogbench

import "github.com/strandline/strandline/internal/auditbench"

// Report is what a run found, as --json prints it. Figures are medians of the samples.
type Report struct {
	Cores     int                   `json:"cores"`
	Quick     bool                  `json:"quick"`
	Rounds    int                   `json:"rounds"`
	Databases []Database            `json:"databases"`
	Expected  []auditbench.Expected `json:"expected"`
	Notes     []string              `json:"notes,omitempty"`
}

// Database is one kind of catalog at several sizes, ascending.
type Database struct {
	Name  string  `json:"name"` // sqlite or postgres
	Sizes []Sized `json:"sizes"`
}

// Sized is what was measured with so many refs.
type Sized struct {
	Refs        int     `json:"refs"`
	FillSeconds float64 `json:"fill_seconds"`
	FillPerSec  float64 `json:"fill_refs_per_second"`
	Verbs       []Verb  `json:"verbs"`
	// BytesPerRef is the ref table with all its indexes, after the fill; TotalPerRef is
	// all that the catalog takes on disk.
	BytesPerRef float64 `json:"bytes_per_ref"`
	TotalPerRef float64 `json:"total_bytes_per_ref"`
}

// Verb is one of them.
type Verb struct {
	Name    string  `json:"name"`
	Rows    int     `json:"rows"` // of a call; 0: calls are counted, not rows
	Seconds float64 `json:"seconds"`
	PerSec  float64 `json:"per_second"` // rows, or calls
	Samples int     `json:"samples"`
	// BarePerSec and BareRatio are of a bare insert of the same rows, if there is one.
	BarePerSec float64 `json:"bare_per_second,omitempty"`
	BareRatio  float64 `json:"bare_ratio,omitempty"`
	// Ratio is the seconds over those at the smallest size of the same database.
	Ratio float64 `json:"ratio,omitempty"`
	// LogPages are the pages that SQLite wrote to its log for a call.
	LogPages float64 `json:"log_pages,omitempty"`
}

// The verbs' names.
const (
	absorbSmall = "AbsorbSlot 1,000"
	absorbLarge = "AbsorbSlot 10,000"
	commit      = "CommitRewrite 10,000"
	plan        = "Plan 1,000"
	liveness    = "Liveness 1,000"
	takeDue     = "TakeDue 1,000"
	renew       = "RenewChain x16"
)

// names in the order of the table.
var names = [...]string{absorbSmall, absorbLarge, commit, plan, liveness, takeDue, renew}
