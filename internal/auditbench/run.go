package auditbench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/storebench"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
	"github.com/strandline/strandline/segment"
)

// Options shape a run. Zero sizes take the defaults of Defaults or, Quick, smaller ones.
type Options struct {
	Sizes

	Quick    bool
	Only     *regexp.Regexp                    // names of parts; nil: all
	Dir      string                            // for the throw-away catalogs; default os.TempDir
	Logger   *slog.Logger                      // of the duties; nil: none
	Bare     *storebench.Contender             // its Delete is what reaping is held against; nil: the driver's own
	Progress func(done, total int, now string) // before each measurement; nil: no one looks

	limit time.Duration // of the run, runTime but for tests
}

// runTime bounds a run: a doctor that starts meanwhile, a writer's among them, takes keys of
// LeftoverAge for those of a run that was killed.
const runTime = doctor.LeftoverAge * 3 / 4

var errLong = fmt.Errorf("the run took longer than %v: measure less, with --quick, --only or smaller sizes", runTime)

// Prefix is what the keys of a run begin with: a doctor's, whose next run takes along
// what a killed measurement left.
const Prefix = segment.DoctorPrefix + "bench-auditor-"

// bench is a run.
type bench struct {
	store *objstore.Store
	o     Options
	dir   string // Prefix<id>/
	tmp   string // of the catalogs
	clock clock  // of all tiers
	done  int    // measurements
	all   int

	catalog func(ctx context.Context, dir string, now func() time.Time) (catalog.Catalog, error) // onDisk but for tests
}

// part is one of a run's measurements, each with its own tiers.
type part struct {
	name  string
	steps func(o *Options) int
	run   func(b *bench, ctx context.Context, r *Report) error
}

func parts() []part {
	return []part{
		{"settle", func(o *Options) int { return o.Rounds }, (*bench).settlePart},
		{"moves", func(o *Options) int { return 2 * o.Rounds }, (*bench).movesPart},
		{"streams", func(o *Options) int { return len(o.Streams) * o.Batches }, (*bench).streamsPart},
		{"reap", func(o *Options) int { return o.Rounds }, (*bench).reapPart},
		{"debt", func(o *Options) int { return 2 * o.Rounds }, (*bench).debtPart},
	}
}

// Run measures and cleans up. What it wrote is deleted on every way out; a failure of that
// is in the error, with the prefix to delete.
func Run(ctx context.Context, store *objstore.Store, o Options) (report Report, err error) {
	o.fill()
	if o.limit == 0 {
		o.limit = runTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, errLong)
	defer cancel()
	b := &bench{store: store, o: o, dir: Prefix + uuid.NewString() + "/", catalog: onDisk}
	report = Report{Store: store.Name(), Prefix: b.dir, Cores: runtime.GOMAXPROCS(0), Quick: o.Quick, Rounds: o.Rounds}
	if b.tmp, err = os.MkdirTemp(o.Dir, "strandline-bench-*"); err != nil {
		return report, fmt.Errorf("a directory for the catalogs: %w", err)
	}
	defer func() {
		if err != nil && errors.Is(context.Cause(ctx), errLong) {
			err = fmt.Errorf("%w (%s)", errLong, err.Error()) // its kind would say: try again
		}
		// A crash before this leaves objects to the next doctor, and one directory.
		err = errors.Join(err, storebench.Clean(ctx, store, b.dir), os.RemoveAll(b.tmp))
	}()
	var chosen []part
	for _, p := range parts() {
		if o.Only == nil || o.Only.MatchString(p.name) {
			chosen = append(chosen, p)
			b.all += p.steps(&o)
		}
	}
	if len(chosen) == 0 {
		return report, fmt.Errorf("no part matches %q: they are settle, moves, streams, reap and debt", o.Only)
	}
	for _, p := range chosen {
		if err := p.run(b, ctx, &report); err != nil {
			return report, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	report.Expected = expected(&report, &b.o)
	return report, nil
}

// step tells what is measured now.
func (b *bench) step(format string, args ...any) {
	if b.o.Progress != nil {
		b.o.Progress(b.done, b.all, fmt.Sprintf(format, args...))
	}
	b.done++
}
