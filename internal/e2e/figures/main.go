//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/strandline/strandline/internal/e2e"
)

// What was aimed at, on two cores.
const (
	leastRows     = 30000 // a second, of 200 B, in batches of 500, acknowledged as local
	windowSlack   = 250   // ms above the shared window, p99 of shared acknowledgements
	leastCatRatio = 0.7   // of the bare client's speed
	mostCatMiB    = 256   // resident, at most
)

// sharedWindow is the default of the writers.
const sharedWindow = 250 * time.Millisecond

// expected is a figure that was aimed at, and what this run measured.
type expected struct {
	Figure   string  `json:"figure"`
	Unit     string  `json:"unit"`
	Least    float64 `json:"least,omitempty"` // one of the two is set
	Most     float64 `json:"most,omitempty"`
	Measured float64 `json:"measured"`
	Reached  bool    `json:"reached"`
}

// report is what a run found, as -json prints it.
type report struct {
	Cores    int        `json:"cores"`
	Expected []expected `json:"expected"`
	Notes    []string   `json:"notes"`
}

func (r *report) least(figure, unit string, bound, measured float64) {
	r.Expected = append(r.Expected, expected{Figure: figure, Unit: unit, Least: bound, Measured: measured, Reached: measured >= bound})
}

func (r *report) most(figure, unit string, bound, measured float64) {
	r.Expected = append(r.Expected, expected{Figure: figure, Unit: unit, Most: bound, Measured: measured, Reached: measured < bound})
}

func (r *report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// options are the flags.
type options struct {
	dir        string
	json       bool
	connection int
	appends    time.Duration
	shared     time.Duration
	batch      int
	streamMiB  int
	rowBytes   int
	rounds     int
}

func flags() *options {
	o := &options{}
	flag.StringVar(&o.dir, "dir", "", "the disk to measure on; default the system's temporary directory")
	flag.BoolVar(&o.json, "json", false, "print JSON")
	flag.IntVar(&o.connection, "connections", 8, "connections that append, each to a stream of its own")
	flag.DurationVar(&o.appends, "append-time", 10*time.Second, "how long rows are appended at full speed")
	flag.DurationVar(&o.shared, "shared-time", 15*time.Second, "how long 1,000 rows a second are appended")
	flag.IntVar(&o.batch, "shared-batch", 10, "rows of each shared append")
	flag.IntVar(&o.streamMiB, "stream-mib", 256, "size of each of the two streams that are read")
	flag.IntVar(&o.rowBytes, "row-bytes", 1024, "size of its rows")
	flag.IntVar(&o.rounds, "rounds", 5, "reads of each stream, by cat and by the bare client in turns")
	flag.Parse()
	return o
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flags()); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) (err error) {
	root, err := os.MkdirTemp(o.dir, "strandline-figures-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	if root, err = filepath.Abs(root); err != nil {
		return err
	}
	site, err := e2e.Open(ctx, root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.Close()) }()
	site.Direct()
	r := &report{Cores: runtime.NumCPU()}
	if err := measure(ctx, site, o, r); err != nil {
		return err
	}
	if o.json {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.print()
}

// measure runs a deployment and takes the figures, one after the other.
func measure(ctx context.Context, site *e2e.Site, o *options, r *report) (err error) {
	w, err := site.Start(ctx, "writer", "writer", "--dir", site.Dir("disk"), "--http", "127.0.0.1:0", "--shared-window", sharedWindow.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Kill()) }() // it has ended by then, or something is wrong
	a, err := site.Start(ctx, "auditor", "auditor", "--http", "127.0.0.1:0", "--auditor-read-grace", "2s")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Kill()) }()
	if err := appendRows(ctx, w.URL(), o, r); err != nil {
		return err
	}
	if err := sharedAppends(ctx, w.URL(), o, r); err != nil {
		return err
	}
	for _, k := range kinds {
		if err := k.fill(ctx, w.URL(), o, r); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Stop(), a.Stop()); err != nil {
		return err
	}
	if _, err := site.Run(ctx, "auditor", "--once", "--settle-age", "0s", "--linger", "5s"); err != nil {
		return err
	}
	for _, k := range kinds {
		if err := k.coldReads(ctx, site, o, r); err != nil {
			return err
		}
	}
	return nil
}

func (r *report) print() error {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tunit\texpected\tmeasured\treached")
	for _, e := range r.Expected {
		bound := fmt.Sprintf("at least %g", e.Least)
		if e.Most != 0 {
			bound = fmt.Sprintf("below %g", e.Most)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.4g\t%v\n", e.Figure, e.Unit, bound, e.Measured, e.Reached)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("\nMinIO, PostgreSQL, writer, auditor and the clients on one machine with %d cores.\n", r.Cores)
	for _, n := range r.Notes {
		fmt.Println(n)
	}
	return nil
}
