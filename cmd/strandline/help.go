package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
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

const (
	// plainWidth is what help is wrapped to where nobody tells a width: through a pipe.
	plainWidth = 100
	// tableWidth is that of a table with a column of text, which is not read as help is.
	tableWidth = 120
)

// widthOf is the width of the terminal that something is printed to, else plain.
func widthOf(w io.Writer, plain int) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return max(width, 60)
		}
	}
	return plain
}

// printHelp is a command's help in the width of where it goes.
func (a *app) printHelp(cmd *cobra.Command, _ []string) {
	width := widthOf(a.out, plainWidth)
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	text := strings.Join(prose(about, width), "\n") + "\n\n"
	for line := range strings.Lines(cmd.UsageString()) {
		text += strings.Join(hung(strings.TrimRight(line, " \n"), width), "\n") + "\n"
	}
	fmt.Fprint(cmd.OutOrStdout(), text)
}

// sourceWidth is what lines of texts in the code are broken at, at least: a shorter one ends there
// on purpose.
const sourceWidth = 95

// prose is text in lines of width at most. A line of it goes on with the next one, unless that
// begins with a space, or the line is a short one.
func prose(text string, width int) (out []string) {
	var paragraph []string
	for line := range strings.Lines(strings.TrimRight(text, " \n")) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, " ") {
			out = append(append(out, flat(paragraph, width)...), hung(line, width)...)
			paragraph = nil
			continue
		}
		paragraph = append(paragraph, line)
		if utf8.RuneCountInString(line) < sourceWidth {
			out, paragraph = append(out, flat(paragraph, width)...), nil
		}
	}
	return append(out, flat(paragraph, width)...)
}

func flat(lines []string, width int) []string {
	if len(lines) == 0 {
		return nil
	}
	return folded(strings.Join(lines, " "), width)
}

// column finds where the text of a line's second column begins.
var column = regexp.MustCompile(`^ *\S+( \S+)* {2,}`)

// hung is a line that is wider folded under its indent, or under its second column.
func hung(line string, width int) []string {
	if utf8.RuneCountInString(line) <= width {
		return []string{line}
	}
	at := len(column.FindString(line))
	if at == 0 || at > width/2 {
		at = len(line) - len(strings.TrimLeft(line, " "))
	}
	lines := folded(line[at:], width-at)
	for i := range lines {
		if i == 0 {
			lines[i] = line[:at] + lines[i]
		} else {
			lines[i] = strings.Repeat(" ", at) + lines[i]
		}
	}
	return lines
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
