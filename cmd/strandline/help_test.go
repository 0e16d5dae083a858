package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelpFits: help through a pipe is wrapped, every command's, and nothing of it is lost.
func TestHelpFits(t *testing.T) {
	var visit func(c *cobra.Command, path []string)
	visit = func(c *cobra.Command, path []string) {
		said := cli(t, "", append(path, "--help")...)
		said.want(t, exitOK, "Usage:")
		for line := range strings.Lines(said.out) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > plainWidth {
				t.Errorf("%q: %d wide: %s", path, n, line)
			}
		}
		about := c.Long
		if about == "" {
			about = c.Short
		}
		if words, all := strings.Fields(about), strings.Fields(said.out); len(all) < len(words) || !slices.Equal(all[:len(words)], words) {
			t.Errorf("%q: help begins otherwise than its text: %s", path, said.out)
		}
		for _, sub := range c.Commands() {
			if !slices.Contains(strings.Fields(said.out), sub.Name()) {
				t.Errorf("%q does not list %s", path, sub.Name())
			}
			visit(sub, append(slices.Clone(path), sub.Name()))
		}
	}
	visit((&app{streams: streams{out: io.Discard, err: io.Discard}}).root(), nil)
}

// TestHung: what hangs below a column, and prose that goes on or not.
func TestHung(t *testing.T) {
	if got := hung("  name    what it does in more words than fit", 30); !slices.Equal(got, []string{"  name    what it does in more", "          words than fit"}) {
		t.Errorf("%q", got)
	}
	if got := hung("  an example without any column at all", 30); !slices.Equal(got, []string{"  an example without any", "  column at all"}) {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("word ", 20)
	got := prose(long+"\nends.\nA new one.\n  $ an example\nlast", 52)
	if want := []string{strings.TrimSpace(strings.Repeat("word ", 10)), strings.TrimSpace(strings.Repeat("word ", 10)), "ends.", "A new one.", "  $ an example", "last"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestVersion(t *testing.T) {
	t.Setenv("STRANDLINE_VERSION", "an image's tag") // is no flag's value
	cli(t, "", "--version").want(t, exitOK, "strandline version ", "go1.")
	cli(t, "", "streams", "--dir", t.TempDir()).want(t, exitFailed, "no deployment")
}

func TestCountOf(t *testing.T) {
	for n, want := range map[int64]string{0: "0 rows", 1: "1 row", 2: "2 rows", 1234: "1,234 rows"} {
		if got := countOf(n, "row"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
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
