package settings

import "fmt"

// maxDistance is how many letters a typo may be away from what was meant.
const maxDistance = 3

// nearest is the known name with the fewest edits from name, if it is near at all.
func nearest(name string, known []string) (string, bool) {
	best, at := "", maxDistance+1
	for _, k := range known {
		if d := distance(name, k); d < at || d == at && k < best {
			best, at = k, d
		}
	}
	return best, at <= maxDistance && at < len(name)
}

// meant ends a refusal with what was probably meant.
func meant(name string, known []string) string {
	if k, ok := nearest(name, known); ok {
		return fmt.Sprintf("; did you mean %s?", k)
	}
	return "; strandline config lists what there is"
}

// distance is the number of letters to insert, drop, change, or swap with their neighbour.
func distance(a, b string) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
