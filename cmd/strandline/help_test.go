package main

import (
	"slices"
	"strings"
	"testing"
)

// TestHelpFits: what a flag does is wrapped, in every command's help.
func TestHelpFits(t *testing.T) {
	for _, command := range []string{"up", "writer", "cat", "bench store", "cache"} {
		said := cli(t, "", append(strings.Fields(command), "--help")...)
		said.want(t, exitOK, "--store")
		_, flags, _ := strings.Cut(said.out, "Flags:")
		for line := range strings.Lines(flags) {
			if len([]rune(line)) > plainWidth+1 {
				t.Errorf("%s: %d wide: %s", command, len([]rune(line)), line)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	t.Setenv("STRANDLINE_VERSION", "an image's tag") // is no flag's value
	cli(t, "", "--version").want(t, exitOK, "strandline version ", "go1.")
	cli(t, "", "streams", "--dir", t.TempDir()).want(t, exitFailed, "no deployment")
}

func TestFolded(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                       {""},
		"short":                                  {"short"},
		"a column of twenty runes…":              {"a column of twenty", "runes…"},
		"exactly twenty runes is a line":         {"exactly twenty runes", "is a line"},
		"s3:GetBucketObjectLockConfiguration it": {"s3:GetBucketObjectLockConfiguration", "it"},
	} {
		if got := folded(text, 3); !slices.Equal(got, want) { // less than the least
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestBenchStoreTakesAClass: the same --store as everywhere else, or the URL alone.
func TestBenchStoreTakesAClass(t *testing.T) {
	for _, store := range []string{"standard=file://" + t.TempDir(), "file://" + t.TempDir()} {
		cli(t, "", "bench", "store", "--quick", "--rounds", "1", "--only", "^put 4 KiB x1$", "--store", store).want(t, exitOK, "put 4 KiB")
	}
}
