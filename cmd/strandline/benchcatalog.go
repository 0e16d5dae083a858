package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strandline/strandline/internal/catalogbench"
)

// catalogBench is bench catalog's flags.
type catalogBench struct {
	url  string
	only string
	o    catalogbench.Options
}

func (a *app) benchCatalogCommand() *cobra.Command {
	s := catalogBench{}
	cmd := &cobra.Command{
		Use:   "catalog [--catalog URL]",
		Short: "Measure the catalog's verbs with few and with many refs, beside a bare insert",
		Long: "AbsorbSlot of 1,000 and 10,000 refs scattered over as many streams, beside a bare insert of the same rows into the same table (a\n" +
			"prepared batch on SQLite, COPY on PostgreSQL); CommitRewrite, Plan, Liveness, TakeDue; compare-and-set by 16 clients; bytes a ref;\n" +
			"and what of it grows with the refs that stand. SQLite is measured in a throw-away file under --dir. PostgreSQL is measured\n" +
			"where --catalog names a database: in a schema of its own there, named strandline_bench_…, which goes with the end, also on Ctrl-C.\n" +
			"No other schema is touched, but the server is busy and some gigabytes fuller meanwhile: 10^7 refs take ten minutes and 3 GB.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.benchCatalog(cmd.Context(), s) },
	}
	f := cmd.Flags()
	f.StringVar(&s.url, "catalog", "", "a PostgreSQL database to measure beside SQLite: postgres://user@host/database; the password from PGPASSWORD or ~/.pgpass")
	f.StringVar(&s.only, "only", "", "sqlite or postgres (default both, if --catalog is given)")
	f.BoolVar(&s.o.Quick, "quick", false, "seconds instead of minutes: everything once or twice, too small to say much")
	f.IntSliceVar(&s.o.Refs, "refs", nil, "numbers of refs, ascending, multiples of 10000 (default 10000,1000000 and, on PostgreSQL, 10000000)")
	f.IntVar(&s.o.Rounds, "rounds", 0, "rounds of measurements (default 3, with --quick 1)")
	f.StringVar(&s.o.Dir, "dir", "", "for SQLite's throw-away file (default the system's temporary directory)")
	return cmd
}

func (a *app) benchCatalog(ctx context.Context, s catalogBench) error {
	o, err := s.options()
	if err != nil {
		return err
	}
	bar := a.progressOf(-1, "")
	o.Progress = func(done, total int, now string) { showMeasurement(bar, done, total, now) }
	report, err := catalogbench.Run(ctx, o)
	_ = bar.Finish() // as in showMeasurement
	if err != nil {
		return err
	}
	if o.Postgres == "" {
		report.Notes = append(report.Notes, "PostgreSQL was not measured: give --catalog postgres://user@host/database, or run `go run ./internal/catalogbench/both` in a checkout, which starts a server of its own.")
	}
	if a.json {
		return a.printJSON(report)
	}
	return a.printCatalogBench(report)
}

func (s catalogBench) options() (catalogbench.Options, error) {
	o := s.o
	if s.url != "" {
		u, err := url.Parse(s.url)
		if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
			return o, usage("--catalog: give postgres://user@host/database (SQLite is measured in a throw-away file under --dir)")
		}
		o.Postgres = s.url
	}
	switch s.only {
	case "":
	case "sqlite":
		o.Postgres = ""
	case "postgres":
		o.NoSQLite = true
	default:
		return o, usage("--only %q: give sqlite or postgres", s.only)
	}
	if err := o.Validate(); err != nil {
		return o, usage("%w", err)
	}
	return o, nil
}

func (a *app) printCatalogBench(r catalogbench.Report) error {
	tables := [][][]string{}
	for i := range r.Databases {
		tables = append(tables, catalogRows(&r.Databases[i]), standingRows(&r.Databases[i]))
	}
	for _, rows := range append(tables, expectedRows(r.Expected)) {
		if len(rows) == 0 {
			continue
		}
		if err := table(a.out, rows); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.out); err != nil {
			return err
		}
	}
	notes := append([]string{
		fmt.Sprintf("%d cores, medians of %d rounds. A verb's rows are in its name; RenewChain is 16 clients at once. growth: seconds over those at the\nfewest refs. of bare: rows a second over those of a bare insert of the same rows into the same table, in the same run.", r.Cores, r.Rounds),
	}, r.Notes...)
	_, err := fmt.Fprintln(a.out, strings.Join(notes, "\n"))
	return err
}

// catalogRows has a row for each verb and size.
func catalogRows(d *catalogbench.Database) [][]string {
	if len(d.Sizes) == 0 {
		return nil
	}
	rows := [][]string{{d.Name, "refs", "ms", "per second", "growth", "bare per second", "of bare", "samples"}}
	for i := range d.Sizes[0].Verbs {
		for j := range d.Sizes {
			v := &d.Sizes[j].Verbs[i]
			name := v.Name
			if j > 0 {
				name = ""
			}
			unit := " rows"
			if v.Rows == 0 {
				unit = " calls"
			}
			bare := ""
			if v.BarePerSec > 0 {
				bare = countText(int64(v.BarePerSec))
			}
			rows = append(rows, []string{
				name, countText(int64(d.Sizes[j].Refs)), fmt.Sprintf("%.2f", 1000*v.Seconds), countText(int64(v.PerSec)) + unit,
				figure(v.Ratio, 2), bare, figure(v.BareRatio, 2), num(v.Samples),
			})
		}
	}
	return rows
}

// standingRows is what the refs took.
func standingRows(d *catalogbench.Database) [][]string {
	if len(d.Sizes) == 0 {
		return nil
	}
	rows := [][]string{{d.Name, "filled in s", "refs/s", "B a ref with indexes", "B of everything"}}
	for _, s := range d.Sizes {
		rows = append(rows, []string{
			countText(int64(s.Refs)) + " refs", figure(s.FillSeconds, 1), countText(int64(s.FillPerSec)), figure(s.BytesPerRef, 0), figure(s.TotalPerRef, 0),
		})
	}
	return rows
}
