package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// buildVersion is the module's version as the go command stamped it, with the commit.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return fmt.Sprintf("%s (%s)", info.Main.Version, info.GoVersion)
}

// plainWidth is what help is wrapped to where nobody tells a width; the long texts are
// about as wide.
const plainWidth = 120

// helpWidth is the width of the terminal that help goes to.
func helpWidth(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return max(width, 60)
		}
	}
	return plainWidth
}

// wrappedFlags is cobra's template of a usage text, with what flags do wrapped.
func wrappedFlags(template string, width int) string {
	return strings.ReplaceAll(template, ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", width))
}

// leastFold is the narrowest column that still reads as text.
const leastFold = 20

// folded is text in lines of width at most; a word that is longer has a line of its own.
func folded(text string, width int) []string {
	width = max(width, leastFold)
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
