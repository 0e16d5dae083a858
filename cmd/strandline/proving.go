package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/spf13/pflag"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
	"github.com/strandline/strandline/segment"
)

// proving is the doctor's short form at the start of whoever writes or deletes.
type proving struct {
	accept bool
}

func (p *proving) register(f *pflag.FlagSet) {
	f.BoolVar(&p.accept, "accept-versioned", false, acceptVersionedHelp)
}

// errUnfit: a store was proven to lack what Strandline relies on.
var errUnfit = errors.New("the store is not fit for Strandline")

// on lets the start of b prove every bucket, all at once and each for 2 s at most. What is
// proven missing is refused. What could not be proven in time, or was denied, is a warning:
// a slow store, or a writer that may not delete, is no reason to stand still. readOnly asks
// for settings and writes nothing.
func (p *proving) on(b *backendFlags, log *slog.Logger, readOnly bool) {
	opts := doctor.Options{Prefix: segment.DoctorPrefix, AcceptVersioned: p.accept, ReadOnly: readOnly}
	b.prove = func(ctx context.Context, classes objstore.Classes) error {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var errs []error // of all buckets: each is to be told
		for _, class := range sorted(classes) {
			for _, store := range classes[class] {
				wg.Go(func() {
					err := prove(ctx, class, store, opts, log)
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, err)
				})
			}
		}
		wg.Wait()
		return errors.Join(errs...)
	}
}

func prove(ctx context.Context, class string, store *objstore.Store, opts doctor.Options, log *slog.Logger) error {
	report, err := doctor.Quick(ctx, store.Driver(), opts)
	if err != nil {
		return fmt.Errorf("proving %s: %w", store.Name(), err)
	}
	for _, r := range report.Unproven() {
		log.Warn("not proven at the start; run strandline doctor", "store", store.Name(), "check", r.Check, "outcome", r.Outcome, "detail", r.Detail, "breaks", r.Breaks)
	}
	if refused := report.Refused(); len(refused) > 0 {
		return unfit(class, store.Name(), refused)
	}
	store.Narrow(report.Capabilities)
	log.Info("the store does what is relied on", "store", store.Name(), "requests", report.Total(), "took", report.Took)
	return nil
}

// unfit says what is missing, what that breaks, and what to do next.
func unfit(class, name string, refused []doctor.Result) error {
	errs := make([]error, 0, len(refused)+1)
	for _, r := range refused {
		errs = append(errs, fmt.Errorf("%s: %s: %s; it breaks: %s", name, r.Check, r.Detail, r.Breaks))
	}
	errs = append(errs, fmt.Errorf("see all of it with: strandline doctor --store '%s=%s'", class, name))
	return fmt.Errorf("%w:\n%w", errUnfit, errors.Join(errs...))
}
