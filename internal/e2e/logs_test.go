//go:build unix

package e2e

import (
	"testing"
	"time"
)

func TestJudgeLine(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 5, 0, time.UTC)
	w := []window{{at.Add(-time.Second), at.Add(time.Second)}}
	line := func(level, msg string, at time.Time) string {
		return `{"time":"` + at.Format(time.RFC3339Nano) + `","level":"` + level + `","msg":"` + msg + `"}`
	}
	for text, ok := range map[string]bool{
		line("INFO", "x", at):                           true,
		line("WARN", "x", at):                           true,
		line("ERROR", "duty failed", at):                true,
		line("ERROR", "duty failed", at.Add(time.Hour)): false,
		line("ERROR", "an object is lost", at):          false,
		"panic: nil":                                    false,
		"1 object":                                      true,
	} {
		if got := judgeLine(text, w, map[string]int{}); (got == "") != ok {
			t.Errorf("%s: %q", text, got)
		}
	}
}
