package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
)

// examinedOut is a report for machines.
type examinedOut struct {
	Class string `json:"class"`
	OK    bool   `json:"ok"`
	Whole bool   `json:"whole"`
	doctor.Report
	Capabilities map[string]any `json:"capabilities"`
	Seconds      float64        `json:"seconds"`
}

func (a *app) printExamined(found []examined) error {
	if a.json {
		out := make([]examinedOut, 0, len(found))
		for _, e := range found {
			caps := map[string]any{}
			for _, c := range capabilitiesOf(e.Capabilities) {
				caps[strings.ReplaceAll(c.name, "-", "_")] = c.value
			}
			out = append(out, examinedOut{e.class, e.whole && e.OK(), e.whole, e.Report, caps, e.Took.Seconds()})
		}
		return a.printJSON(out)
	}
	for _, e := range found {
		if err := a.printExam(e); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printExam(e examined) error {
	colour := isTerminal(a.out) && os.Getenv("NO_COLOR") == ""
	fmt.Fprintf(a.out, "%s=%s\n\n", e.class, e.Store)
	rows := [][]string{{"CHECK", paint("OUTCOME", "", colour), "WHAT IT MEANS"}}
	for _, r := range e.Results {
		lines := []string{meaning(r)}
		if isTerminal(a.out) {
			lines = folded(lines[0], widthOf(a.out, tableWidth)-meaningAt(e.Results))
		}
		rows = append(rows, []string{r.Check, paint(string(r.Outcome), hue(r), colour), lines[0]})
		for _, line := range lines[1:] {
			rows = append(rows, []string{"", paint("", "", colour), line})
		}
	}
	if err := table(a.out, rows); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	a.printCannot(e)
	return nil
}

// meaningAt is the column at which the table's text begins.
func meaningAt(results []doctor.Result) int {
	check, outcome := len("CHECK"), len("OUTCOME")
	for _, r := range results {
		check, outcome = max(check, len(r.Check)), max(outcome, len(r.Outcome))
	}
	return check + 2 + outcome + 2
}

// meaning is what a reader must know of a result.
func meaning(r doctor.Result) string {
	switch r.Outcome {
	case doctor.OK:
		if r.Detail != "" {
			return r.Proves + " (" + r.Detail + ")"
		}
		return r.Proves
	case doctor.Missing, doctor.Failed:
		return r.Detail
	case doctor.Denied:
		if len(r.Permissions) > 0 {
			return "one of these is not granted: " + strings.Join(r.Permissions, ", ")
		}
		return "not granted"
	default:
		return r.Detail
	}
}

// printCannot sums up: what the store cannot do and what that breaks, what is left of its
// capabilities, and what the examination cost.
func (a *app) printCannot(e examined) {
	against, open := a.printOdd(e.Results)
	var caps []string
	for _, c := range capabilitiesOf(e.Capabilities) {
		caps = append(caps, fmt.Sprintf("%s %v", c.name, c.value))
	}
	fmt.Fprintf(a.out, "capabilities: %s\n", strings.Join(caps, ", "))
	var spent []string
	for _, op := range slices.Sorted(maps.Keys(e.Requests)) {
		spent = append(spent, fmt.Sprintf("%s %d", op, e.Requests[op]))
	}
	fmt.Fprintf(a.out, "%s requests in %v: %s\n", countText(e.Total()), e.Took.Round(10*time.Millisecond), strings.Join(spent, ", "))
	if e.Swept > 0 {
		fmt.Fprintf(a.out, "removed %d leftovers of an earlier doctor\n", e.Swept)
	}
	for _, left := range e.Left {
		fmt.Fprintf(a.out, "left behind, a later doctor removes it: %s\n", left)
	}
	switch {
	case !e.whole:
		fmt.Fprintf(a.out, "no verdict: the examination ended early\n\n")
	case len(against) == 0 && len(open) > 0:
		fmt.Fprintf(a.out, "NOT PROVEN: %d required could not be tried to the end: %s; run it again when the store answers steadily\n\n", len(open), strings.Join(open, ", "))
	case len(against) > 0:
		fmt.Fprintf(a.out, "NOT FIT: %d required do not hold: %s\n\n", len(against), strings.Join(against, ", "))
	default:
		fmt.Fprintf(a.out, "fit: all that is required holds\n\n")
	}
}

// printOdd tells what is not as it should be, and returns what speaks against the store and
// what is open: a check that could not be tried to the end shows nothing against it.
func (a *app) printOdd(results []doctor.Result) (against, open []string) {
	for _, r := range results {
		if r.Outcome == doctor.OK || r.Outcome == doctor.Skipped {
			continue
		}
		mark := "note:  "
		switch {
		case r.Holds():
		case r.Outcome == doctor.Failed:
			mark = "OPEN:  "
			open = append(open, r.Check)
		default:
			mark = "BREAKS:"
			against = append(against, r.Check)
		}
		fmt.Fprintf(a.out, "%s %s is %s: %s\n", mark, r.Check, r.Outcome, r.Breaks)
	}
	return against, open
}

type capability struct {
	name  string
	value any
}

func capabilitiesOf(c objstore.Capabilities) []capability {
	return []capability{
		{"ordered-list", c.OrderedList},
		{"start-after", c.StartAfter},
		{"directory-prefix", c.DirectoryPrefix},
		{"range-copy", c.RangeCopy},
		{"min-copy", c.MinCopy},
		{"min-part", c.MinPart},
		{"equal-parts", c.EqualParts},
		{"conditional-complete", c.ConditionalComplete},
		{"list-uploads", c.ListUploads},
		{"max-delete-set", c.MaxDeleteSet},
	}
}

// The colours of a terminal. All have one length, so that the columns stay in line.
const (
	green  = "\x1b[32m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	plain  = "\x1b[39m"
)

func hue(r doctor.Result) string {
	switch {
	case r.Outcome == doctor.OK:
		return green
	case !r.Holds():
		return red
	case r.Outcome == doctor.Skipped:
		return plain
	default:
		return yellow
	}
}

func paint(text, hue string, colour bool) string {
	if !colour {
		return text
	}
	if hue == "" {
		hue = plain
	}
	return hue + text + plain
}
