package catalogbench

import (
	"fmt"

	"github.com/strandline/strandline/internal/auditbench"
)

// The figures that were aimed at.
const (
	mostRatio     = 2.0 // seconds at the largest size over those at the smallest
	leastBare     = 0.5 // of the rows a second of a bare insert
	mostRefBytes  = 300
	fewest, least = 10_000, 1_000_000 // the sizes that the ratio is meant for
)

// expected holds what was measured against what was aimed at.
func expected(r *Report) []auditbench.Expected {
	var out []auditbench.Expected
	for i := range r.Databases {
		d := &r.Databases[i]
		if n := len(d.Sizes); n > 0 {
			out = append(out, ratios(d, !r.Quick)...)
			out = append(out, besideBare(d, !r.Quick)...)
			last := &d.Sizes[n-1]
			out = append(out, auditbench.Expected{
				Figure: d.Name + ": a ref with its indexes, " + counted(last.Refs) + " refs", Unit: "B", Most: mostRefBytes,
				Measured: last.BytesPerRef, Reached: last.BytesPerRef <= mostRefBytes, Binding: last.Refs >= fewest,
			})
		}
	}
	return out
}

func ratios(d *Database, full bool) []auditbench.Expected {
	small, large := &d.Sizes[0], &d.Sizes[len(d.Sizes)-1]
	if small == large {
		return nil
	}
	var out []auditbench.Expected
	for _, v := range large.Verbs {
		if v.Name == renew {
			continue // its time does not depend on refs; it is shown in the table
		}
		out = append(out, auditbench.Expected{
			Figure: fmt.Sprintf("%s: %s, %s over %s refs", d.Name, v.Name, counted(large.Refs), counted(small.Refs)), Unit: "ratio",
			Most: mostRatio, Measured: v.Ratio, Reached: v.Ratio <= mostRatio, Binding: full && small.Refs <= fewest && large.Refs >= least,
		})
	}
	return out
}

func besideBare(d *Database, full bool) []auditbench.Expected {
	var out []auditbench.Expected
	for i := range d.Sizes {
		for _, v := range d.Sizes[i].Verbs {
			if v.BarePerSec == 0 {
				continue
			}
			out = append(out, auditbench.Expected{
				Figure: fmt.Sprintf("%s: %s beside a bare insert, %s refs", d.Name, v.Name, counted(d.Sizes[i].Refs)), Unit: "ratio",
				Least: leastBare, Measured: v.BareRatio, Reached: v.BareRatio >= leastBare, Binding: full,
			})
		}
	}
	return out
}

// counted writes 10000 as 10^4.
func counted(n int) string {
	zeros := 0
	for m := n; m >= 10 && m%10 == 0; m /= 10 {
		zeros++
		if m == 10 {
			return fmt.Sprintf("10^%d", zeros)
		}
	}
	return fmt.Sprint(n)
}
