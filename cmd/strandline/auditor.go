package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/catalog"
)

func newUUID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

func (a *app) auditorCommand() *cobra.Command {
	var r auditorRun
	cmd := &cobra.Command{
		Use:   "auditor",
		Short: "Run the duties: absorb-check, settle, pack-merge, tail-fill, gc, teardown, reclaim, trim-check, reap-check, orphan, sweep",
		Long: "Runs until Ctrl-C, or with --once until nothing is due. --once also waits for what comes due within --linger, so that\n" +
			"short graces are seen through in one run. Any number of auditors may run at once.\n" +
			"Duties: absorb-check, settle, pack-merge, tail-fill, gc, teardown, reclaim, trim-check, reap-check, orphan, sweep.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runAuditor(cmd.Context(), &r) },
	}
	fs := cmd.Flags()
	r.backend.register(fs)
	r.backend.cache.register(fs)
	r.flags.register(fs)
	r.proving.register(fs)
	r.listen.register(fs, "")
	fs.BoolVar(&r.once, "once", false, "run what is due until nothing is, then exit")
	fs.DurationVar(&r.linger, "linger", 0, "with --once: also wait for what comes due within this time (default: 3 read graces, at most 5s)")
	fs.BoolVar(&r.flags.config.DryRun, "dry-run", false, "print what would be deleted or rewritten and why the rest stays; change nothing")
	fs.BoolVar(&r.flags.config.Sweep, "sweep", false, "also reclaim settled objects that nothing watches")
	fs.StringSliceVar(&r.flags.config.Duties, "duty", nil, "run only these duties, e.g. gc or pack-merge (see above)")
	a.check("auditor", r.validate)
	return cmd
}

// auditorRun is what the command was given.
type auditorRun struct {
	backend backendFlags
	listen  listenFlags
	flags   auditorFlags
	proving proving
	once    bool
	linger  time.Duration
}

// validate reports every fault at once.
func (r *auditorRun) validate() error {
	errs := []error{r.backend.validate(), r.listen.validate(), r.flags.validate()}
	if r.flags.config.DryRun && !r.once {
		errs = append(errs, errors.New("--dry-run looks at what is due now: give --once, too"))
	}
	if r.flags.given("linger") && !r.once {
		errs = append(errs, errors.New("--linger is how long --once waits: give --once, too, or leave it out"))
	}
	if r.linger < 0 {
		errs = append(errs, fmt.Errorf("--linger %v: give 0 or more", r.linger))
	}
	if err := errors.Join(errs...); err != nil {
		return usage("%w", err)
	}
	return nil
}

func (a *app) runAuditor(ctx context.Context, r *auditorRun) error {
	if err := r.validate(); err != nil {
		return err
	}
	log, err := a.logger()
	if err != nil {
		return err
	}
	return r.listen.within(ctx, log, func() error { return a.auditUntil(ctx, r, log) })
}

// auditUntil is the auditor, from its first look to its last close.
func (a *app) auditUntil(ctx context.Context, r *auditorRun, log *slog.Logger) (err error) {
	if err := free(ctx, port{"--http", r.listen.http}); err != nil {
		return err
	}
	r.proving.on(&r.backend, log, r.flags.config.DryRun)
	r.backend.cache.log, r.backend.patient = log, !r.once
	open := func(ctx context.Context) (*tier, error) { return r.backend.open(ctx, modeWrite) }
	if !r.once {
		open = whenFounded(open, log)
	}
	t, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = r.listen.out.closing(err, t) }()
	if err := r.listen.telemetry.start(ctx, "auditor", t, log); err != nil {
		return err
	}
	if !r.flags.config.DryRun {
		if err := r.flags.seed(ctx, t.catalog, log); err != nil {
			return err
		}
	}
	if err := r.flags.affords(ctx, t.catalog, log); err != nil {
		return err
	}
	aud, err := r.flags.build(t, log)
	if err != nil {
		return err
	}
	t.watch.Watch(t.audited(t.watched(), aud))
	if !r.once {
		run := auditing(aud)
		if r.listen.http != "" {
			run = (&auditService{app: a, flags: &r.listen, tier: t, aud: aud, log: log}).run
		}
		return firstOf(ignoreCancel(ctx, run(ctx)), a.printSummary(t, aud.Summary()))
	}
	return a.auditOnce(ctx, r, t, aud)
}

// auditOnce works until nothing is due, and waits for what its own work makes due.
func (a *app) auditOnce(ctx context.Context, r *auditorRun, t *tier, aud *auditor.Auditor) (err error) {
	if !r.flags.given("linger") {
		if r.linger, err = defaultLinger(ctx, t); err != nil {
			return err
		}
	}
	sum, err := aud.Once(ctx, auditor.OnceOptions{Linger: r.linger})
	return firstOf(err, a.printSummary(t, sum))
}

func defaultLinger(ctx context.Context, t *tier) (time.Duration, error) {
	settings, err := t.catalog.Settings(ctx)
	if err != nil {
		return 0, err
	}
	now, err := t.catalog.Now(ctx)
	if err != nil {
		return 0, err
	}
	return auditor.Linger(settings.ReadGrace.Deleting(now, catalog.DefaultReadGrace)), nil
}

// ignoreCancel: a signal is the usual end of a service.
func ignoreCancel(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

func (a *app) printSummary(t *tier, s auditor.Summary) error {
	if a.json {
		return a.printJSON(struct {
			auditor.Summary
			Requests map[string]int64 `json:"requests"`
		}{s, requestsOf(t)})
	}
	rows := [][]string{{"DUTY", "RUNS", "FAILED", "ITEMS", "SECONDS", "MOVED", "OLDEST DEBT", "OUTCOMES", "KEPT"}}
	for _, name := range sorted(s.Duties) {
		d := s.Duties[name]
		rows = append(rows, []string{
			name, num(d.Started), num(d.Failed), num(d.Items), fmt.Sprintf("%.2f", d.Seconds), movedText(&d), debtText(&d), counts(d.Outcomes), counts(d.Kept),
		})
	}
	if err := table(a.out, rows); err != nil {
		return err
	}
	for _, line := range s.DryRun {
		fate := "stays"
		if line.Goes {
			fate = "would go"
		}
		fmt.Fprintf(a.out, "%-8s %s: %s\n", fate, line.Key, line.Reason)
	}
	if s.Held != "" {
		fmt.Fprintf(a.out, "deletes are held: %s\n", s.Held)
	}
	if b := s.Budget; b != nil {
		fmt.Fprintf(a.out, "budget: share of one of %d auditors: %s, %s; waited %.0f s for it\n", b.Auditors,
			perSecond(b.BytesPerSecond, bytesText(int64(b.BytesPerSecond))), perSecond(b.Requests, fmt.Sprintf("%.1f requests", b.Requests)), b.WaitedSeconds)
	}
	return nil
}

func perSecond(share float64, text string) string {
	if share == 0 {
		return "no bound"
	}
	return text + "/s"
}

// movedText is what went through the process, and what the store moved by itself.
func movedText(d *auditor.DutySummary) string {
	if d.Through+d.ServerSide == 0 {
		return "-"
	}
	return fmt.Sprintf("%s, %s in the store", bytesText(d.Through), bytesText(d.ServerSide))
}

func debtText(d *auditor.DutySummary) string {
	switch {
	case d.OldestDebt.IsZero():
		return "-"
	case d.DebtAge == 0:
		return "not due"
	}
	return time.Duration(d.DebtAge * float64(time.Second)).Round(time.Second).String()
}

func counts(m map[string]int) string {
	parts := make([]string, 0, len(m))
	for k, n := range m {
		parts = append(parts, fmt.Sprintf("%s %d", k, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
