package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/internal/auditbench"
)

// auditorBench is bench auditor's flags.
type auditorBench struct {
	url, only, dir string
	o              auditbench.Options
	raw            sizeFlag
	move           sizeFlag
	batch          sizeFlag
}

func (a *app) benchAuditorCommand() *cobra.Command {
	s := auditorBench{}
	cmd := &cobra.Command{
		Use:   "auditor --store URL",
		Short: "Measure the auditor's duties: settle, gc, tail-fill, pack-merge, probe, reap",
		Long: "Rows a second and CPU of a settle; what gc and tail-fill let the store move by itself; requests per settled GB of few and of\n" +
			"many streams; probes and reaps beside the store's own bulk delete; one debt among so many and ten times as many objects.\n" +
			"Two to three minutes (--quick: seconds), some GiB written in all, under meta/doctor/, and deleted, also on Ctrl-C; the catalogs\n" +
			"are throw-away files under --dir. No other key is touched. Medians of --rounds; credentials as for every store.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.benchAuditor(cmd.Context(), s) },
	}
	f := cmd.Flags()
	d := auditbench.Defaults()
	f.StringVar(&s.url, "store", "", "the store: "+storeURLs)
	f.BoolVar(&s.o.Quick, "quick", false, "seconds instead of minutes: everything once, too small to say much")
	f.StringVar(&s.only, "only", "", "only the parts that match this regular expression: settle, moves, streams, reap, debt")
	f.StringVar(&s.dir, "dir", "", "for the throw-away catalogs and the spool (default the system's temporary directory)")
	f.IntVar(&s.o.Rounds, "rounds", 0, fmt.Sprintf("measurements of each figure (default %d)", d.Rounds))
	f.Var(&s.raw, "settle-bytes", fmt.Sprintf("raw bytes of one settle (default %s)", bytesText(d.RawBytes)))
	f.Var(&s.move, "move-bytes", fmt.Sprintf("stored bytes of the object that gc cuts (default %s)", bytesText(d.Move)))
	f.IntSliceVar(&s.o.Streams, "streams", nil, fmt.Sprintf("numbers of streams to settle, ascending (default %s)", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(d.Streams)), ","), "[]")))
	f.IntVar(&s.o.Batches, "batches", 0, fmt.Sprintf("batches of each number of streams (default %d), whose packs are merged in the end", d.Batches))
	f.Var(&s.batch, "batch-bytes", fmt.Sprintf("raw bytes of one batch (default %s)", bytesText(d.Batch)))
	f.IntVar(&s.o.Objects, "objects", 0, fmt.Sprintf("objects to reap in a round (default %d)", d.Objects))
	f.IntVar(&s.o.Standing, "standing", 0, fmt.Sprintf("objects that stand around a debt, and ten times as many (default %d)", d.Standing))
	f.IntVar(&s.o.Debt, "debt", 0, fmt.Sprintf("streams to settle and to reap of one debt (default %d)", d.Debt))
	return cmd
}

func (a *app) benchAuditor(ctx context.Context, s auditorBench) (err error) {
	s.url = withoutClass(s.url)
	o, err := s.options()
	if err != nil {
		return err
	}
	if o.Logger, err = a.loggerFrom(slog.LevelWarn); err != nil {
		return err
	}
	store, err := openMeasured(ctx, s.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	bare, err := bareClients(ctx, s.url)
	if err != nil {
		return err
	}
	for i := range bare {
		defer func() { err = errors.Join(err, bare[i].Close()) }()
	}
	if len(bare) > 0 {
		o.Bare = &bare[0]
	}
	bar := a.progressOf(-1, "")
	o.Progress = func(done, total int, now string) { showMeasurement(bar, done, total, now) }
	report, err := auditbench.Run(ctx, store, o)
	_ = bar.Finish() // as in showMeasurement
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(report)
	}
	return a.printAuditorBench(report)
}

// options reports every fault at once.
func (s auditorBench) options() (auditbench.Options, error) {
	o := s.o
	o.Dir, o.RawBytes, o.Move, o.Batch = s.dir, int64(s.raw), int64(s.move), int64(s.batch)
	var errs []error
	if s.url == "" {
		errs = append(errs, fmt.Errorf("--store is missing; give %s", storeURLs))
	}
	if s.only != "" {
		re, err := regexp.Compile(s.only)
		if err != nil {
			errs = append(errs, fmt.Errorf("--only: %w", err))
		}
		o.Only = re
	}
	errs = append(errs, o.Validate())
	if err := errors.Join(errs...); err != nil {
		return o, usage("%w", err)
	}
	return o, nil
}
