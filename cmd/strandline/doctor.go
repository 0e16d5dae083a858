package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
	"github.com/strandline/strandline/segment"
)

// doctorFlags say which buckets are examined; no catalog is needed, nor a deployment.
type doctorFlags struct {
	dir    string
	stores []string
	accept bool
}

const acceptVersionedHelp = "use a bucket that keeps versions or has an object lock: deletes then free nothing there"

func (a *app) doctorCommand() *cobra.Command {
	f := &doctorFlags{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Prove on the real bucket every primitive that Strandline relies on",
		Long: "Writes throw-away objects under meta/doctor/, races for them, copies, lists, deletes, asks for the bucket's settings, and\n" +
			"leaves nothing behind. Safe beside a running deployment; some 400 requests and 20 MiB. Exit 0: all that is required holds;\n" +
			"1: something required is missing, denied or could not be proven, and the table says what that breaks; 5: the store cannot be\n" +
			"reached. writer, auditor and up run a short form at every start (up to 2 s) and refuse a store that fails it.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.dir, "dir", "", "examine the embedded layout's bucket, DIR/bucket (default strandline-data, unless --store is given)")
	fs.StringArrayVar(&f.stores, "store", nil, "CLASS=URL[,URL…], as for all commands; any classes")
	fs.BoolVar(&f.accept, "accept-versioned", false, acceptVersionedHelp)
	return cmd
}

// buckets are what is to be examined.
func (f *doctorFlags) buckets() ([]classSpec, error) {
	if len(f.stores) > 0 {
		return parseClasses(f.stores)
	}
	dir := f.dir
	if dir == "" {
		dir = defaultDir
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, usage("--dir: %w", err)
	}
	file := (&url.URL{Scheme: "file", Path: filepath.Join(abs, "bucket")}).String()
	return []classSpec{{string(segment.ClassStandard), []string{file}}}, nil
}

func (a *app) doctor(ctx context.Context, f *doctorFlags) error {
	specs, err := f.buckets()
	if err != nil {
		return err
	}
	var found []examined
	var errs []error // a bucket that is away is no reason to leave the others unexamined
	for _, spec := range specs {
		for _, raw := range spec.urls {
			if ctx.Err() != nil {
				return firstOf(context.Cause(ctx), a.printExamined(found))
			}
			e, err := a.examine(ctx, spec.class, raw, f.accept)
			if e != nil {
				found = append(found, *e)
			}
			errs = append(errs, err)
		}
	}
	if err := firstOf(errors.Join(errs...), a.printExamined(found)); err != nil {
		return err
	}
	for _, e := range found {
		if !e.OK() {
			return &exitError{code: exitFailed}
		}
	}
	return nil
}

// examined is one bucket's report.
type examined struct {
	class string
	doctor.Report
	whole bool // false: it ended early
}

// examine opens a bucket and runs the doctor on it. What was seen before an error is given
// with it.
func (a *app) examine(ctx context.Context, class, raw string, accept bool) (*examined, error) {
	d, err := openDriver(ctx, raw, modeRead)
	var denied *objstore.Error
	if errors.As(err, &denied) && errors.Is(denied, objstore.ErrDenied) && denied.Op == string(objstore.OpList) && strings.Contains(err.Error(), "AccessDenied") {
		// Not for a wrong key or an untrusted certificate.
		err = fmt.Errorf("%w (to be examined, a bucket needs s3:ListBucket)", err)
	}
	if err != nil {
		return nil, err
	}
	bar := a.progressOf(-1, "checks")
	report, err := doctor.Run(ctx, d, doctor.Options{
		Prefix: segment.DoctorPrefix, AcceptVersioned: accept,
		Progress: func(_, _ int, check string) { bar.Describe(check); _ = bar.Add(1) }, // a bar that cannot be drawn is no reason to stop
	})
	_ = bar.Finish() // likewise
	return &examined{class, report, err == nil}, errors.Join(err, d.Close())
}

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
			lines = folded(lines[0], helpWidth(a.out)-meaningAt(e.Results))
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
	var against, open []string
	for _, r := range e.Results {
		if r.Outcome == doctor.OK || r.Outcome == doctor.Skipped {
			continue
		}
		mark := "note:  "
		switch {
		case r.Holds():
		case r.Outcome == doctor.Failed: // it shows nothing against the store
			mark = "OPEN:  "
			open = append(open, r.Check)
		default:
			mark = "BREAKS:"
			against = append(against, r.Check)
		}
		fmt.Fprintf(a.out, "%s %s is %s: %s\n", mark, r.Check, r.Outcome, r.Breaks)
	}
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
