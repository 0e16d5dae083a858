//go:build unix

package e2e

import (
	"slices"
	"testing"
)

func TestJudgeConsumer(t *testing.T) {
	_, read := history()
	again := append(slices.Clone(read[:3]), read...)
	for _, x := range []struct {
		name string
		seen []row
		lost bool
		ok   bool
	}{
		{"all", read, false, true},
		{"all, disk lost", read, true, true},
		{"again", again, false, false},
		{"again, disk lost", again, true, true},
		{"one not", read[1:], false, false},
		{"one not, disk lost", read[1:], true, false},
		{"one that is not in the chain, disk lost", append(slices.Clone(read), row{"s", 99, "lost"}), true, true},
		{"one that is not in the chain", append(slices.Clone(read), row{"s", 99, "lost"}), false, false},
	} {
		if got := judgeConsumer(1, x.seen, read, x.lost); (got == nil) != x.ok {
			t.Errorf("%s: %q", x.name, got)
		}
	}
	if judgeSent("s", len(read), read) != nil || judgeSent("s", len(read)+1, read) == nil || judgeSent("s", len(read)+3, again) == nil {
		t.Error("OTLP counts are not compared")
	}
}
