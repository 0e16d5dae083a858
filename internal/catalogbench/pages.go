package catalogbench

import "fmt"

// pageNotes says how many pages SQLite's log took for a scattered slot at the fewest and
// the most refs. That is work for the disk which no program saves that keeps refs in the
// order of their streams: a share of the growth that is not the verb's.
func pageNotes(r *Report) (notes []string) {
	for i := range r.Databases {
		d := &r.Databases[i]
		if len(d.Sizes) < 2 {
			continue
		}
		few, many := &d.Sizes[0], &d.Sizes[len(d.Sizes)-1]
		for j := range many.Verbs {
			a, b := &few.Verbs[j], &many.Verbs[j]
			if a.LogPages == 0 {
				continue
			}
			notes = append(notes, fmt.Sprintf(
				"%s: %s writes %.0f pages to the log at %s refs, %.0f at %s (%.1f times as many): rows that share a page of\na small table have one each in a large one, and the log takes whole pages. Time grows with them, whoever inserts.",
				d.Name, b.Name, a.LogPages, counted(few.Refs), b.LogPages, counted(many.Refs), b.LogPages/a.LogPages))
		}
	}
	return notes
}
