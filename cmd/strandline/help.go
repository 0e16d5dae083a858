package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

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
