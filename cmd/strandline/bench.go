package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/strandline/strandline/internal/storebench"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/miniostore"
	"github.com/strandline/strandline/objstore/s3store"
)

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure on this machine",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.benchStoreCommand(), a.benchAuditorCommand(), a.benchCatalogCommand())
	return cmd
}

// maxRounds is far more than medians gain by.
const maxRounds = 100

// storeBench is bench store's flags.
type storeBench struct {
	url    string
	only   string
	quick  bool
	rounds int
}

func (a *app) benchStoreCommand() *cobra.Command {
	var s storeBench
	cmd := &cobra.Command{
		Use:   "store --store URL",
		Short: "Measure a store through Strandline, beside the bare client of the same library",
		Long: "Puts, ranged gets, footers, a slot's publish, a bulk delete and a range copy, at 1, 8 and 16 in flight: throughput, CPU of\n" +
			"this process, peak memory and requests, in turns with the bare client (set as an expert would, and with its defaults).\n" +
			"Writes some gigabytes in all (--quick: some hundred MiB) under meta/doctor/, one measurement at a time, and\n" +
			"deletes them, also on Ctrl-C. No other key is touched. Medians of --rounds, within 45 minutes; credentials as for every store.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.benchStore(cmd.Context(), s) },
	}
	f := cmd.Flags()
	f.StringVar(&s.url, "store", "", "the store: "+storeURLs)
	f.BoolVar(&s.quick, "quick", false, "seconds instead of minutes: every cell, few operations")
	f.StringVar(&s.only, "only", "", "only the cells that match this regular expression, for example 'get 8 MiB x16'")
	f.IntVar(&s.rounds, "rounds", 0, fmt.Sprintf("measurements a cell and client (default %d, with --quick %d)", storebench.DefaultRounds, storebench.QuickRounds))
	return cmd
}

func (a *app) benchStore(ctx context.Context, s storeBench) (err error) {
	s.url = withoutClass(s.url)
	o, err := s.options()
	if err != nil {
		return err
	}
	store, err := openMeasured(ctx, s.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if o.Bare, err = bareClients(ctx, s.url); err != nil {
		return err
	}
	defer func() {
		for _, b := range o.Bare {
			err = errors.Join(err, b.Close())
		}
	}()
	bar := a.progressOf(-1, "")
	o.Progress = func(done, total int, now string) { showMeasurement(bar, done, total, now) }
	report, err := storebench.Run(ctx, store, o)
	_ = bar.Finish() // as in showMeasurement
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(report)
	}
	return a.printBench(report)
}

// openMeasured opens a store to be measured.
func openMeasured(ctx context.Context, url string) (*objstore.Store, error) {
	driver, err := openDriver(ctx, url, modeCreate) // an empty directory will do
	if err != nil {
		return nil, err
	}
	store, err := objstore.New(driver, objstore.Config{})
	if err != nil {
		return nil, errors.Join(err, driver.Close())
	}
	return store, nil
}

// withoutClass takes what the other commands take, CLASS=URL: what was copied from them
// means the same.
func withoutClass(flag string) string {
	if class, url, ok := strings.Cut(flag, "="); ok && !strings.Contains(class, ":") {
		return url
	}
	return flag
}

// options reports every fault at once.
func (s storeBench) options() (storebench.Options, error) {
	o := storebench.Options{Quick: s.quick, Rounds: s.rounds}
	var errs []error
	if s.url == "" {
		errs = append(errs, fmt.Errorf("--store is missing; give %s", storeURLs))
	}
	if s.rounds < 0 || s.rounds > maxRounds {
		errs = append(errs, fmt.Errorf("--rounds %d: give 1 to %d", s.rounds, maxRounds))
	}
	if s.only != "" {
		re, err := regexp.Compile(s.only)
		if err != nil {
			errs = append(errs, fmt.Errorf("--only: %w", err))
		}
		o.Only = re
	}
	if err := errors.Join(errs...); err != nil {
		return o, usage("%w", err)
	}
	return o, nil
}

// bareClients are those of the library behind the store's scheme; none for a directory.
func bareClients(ctx context.Context, raw string) (out []storebench.Contender, err error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, usage("--store: %q is no URL", objstore.Shown(raw))
	}
	for _, defaults := range []bool{false, true} {
		var c storebench.Contender
		switch u.Scheme {
		case "minio":
			var cfg miniostore.Config
			if cfg, err = miniostore.ParseURL(raw); err == nil {
				c, err = storebench.Minio(ctx, cfg, defaults)
			}
		case "s3":
			var cfg s3store.Config
			if cfg, err = s3store.ParseURL(raw); err == nil {
				c, err = storebench.S3(ctx, cfg, defaults)
			}
		default:
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func showMeasurement(bar *progressbar.ProgressBar, done, total int, now string) {
	if bar.GetMax() != total {
		bar.ChangeMax(total)
	}
	bar.Describe(now)
	_ = bar.Set(done) // a bar that cannot be drawn stops no benchmark
}

func (a *app) printBench(r storebench.Report) error {
	rows := [][]string{{"operation", "in flight", "client", "MiB/s", "op/s", "CPU s/GiB", "CPU µs/op", "peak heap", "requests/op", "speed", "CPU"}}
	for _, c := range r.Cells {
		if c.Skipped != "" {
			rows = append(rows, []string{c.Operation, num(c.InFlight), "skipped: " + c.Skipped})
			continue
		}
		for i, who := range c.Contenders {
			row := []string{
				"", "", who.Name, figure(who.BytesPerSecond/(1<<20), 1), figure(who.OperationsPerSecond, 1), figure(who.CPUSecondsPerGiB, 2),
				figure(who.CPUMicrosecondsPerOp, 0), bytesText(who.PeakHeapBytes), figure(who.RequestsPerOperation, 1), "", "",
			}
			if i == 0 {
				row[0], row[1] = c.Operation, num(c.InFlight)
				row[7] += " of " + bytesText(c.HeapBoundBytes)
				row[9], row[10] = figure(c.ThroughputRatio, 2), figure(c.CPURatio, 2)
			}
			rows = append(rows, row)
		}
	}
	if err := table(a.out, rows); err != nil {
		return err
	}
	notes := append([]string{
		fmt.Sprintf("%s, medians of %d rounds; speed and CPU are ours over the bare client's, of the same round.", r.Store, r.Rounds),
	}, r.Notes...)
	_, err := fmt.Fprintln(a.out, strings.Join(notes, "\n"))
	return err
}

// figure leaves out what is not known or not the point.
func figure(v float64, digits int) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.*f", digits, v)
}
