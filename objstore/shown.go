package objstore

import "strings"

// Shown is as much of a store's URL as may be printed: what stands before an @ or in the
// query may be a password that somebody put there.
func Shown(raw string) string {
	shown, _, _ := strings.Cut(raw, "?")
	if at := strings.LastIndex(shown, "@"); at >= 0 {
		shown = "…" + shown[at:]
	}
	return shown
}
