package catalogbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"time"
)

// Options of a run. Zero values take the defaults.
type Options struct {
	Quick    bool
	Refs     []int         // sizes, ascending; default 10^4, 10^6 and, on PostgreSQL, 10^7
	Rounds   int           // default 3
	Absorbs  int           // samples of the quick verbs in a round; default 5
	Renewing time.Duration // of the compare-and-set in a round; default 1 s
	Dir      string        // for the throw-away files; default os.TempDir
	Postgres string        // DSN; empty: SQLite only
	NoSQLite bool
	Progress func(done, total int, now string) // before each measurement; nil: no one looks
}

const (
	mostRefs      = 10_000_000
	mostSQLite    = 1_000_000 // a file is for one machine; more is measured on asking only
	madeAnew      = 100_000   // refs up to which a round has a catalog of its own
	defaultRounds = 3
	mostRounds    = 100
)

// Validate reports every fault at once.
func (o *Options) Validate() error {
	var errs []error
	if o.Rounds < 0 || o.Rounds > mostRounds {
		errs = append(errs, fmt.Errorf("rounds %d: give 1 to %d", o.Rounds, mostRounds))
	}
	for i, n := range o.Refs {
		if n < largeSlot || n > mostRefs || n%largeSlot != 0 || i > 0 && n <= o.Refs[i-1] {
			errs = append(errs, fmt.Errorf("refs %v: give multiples of %d up to %d, ascending", o.Refs, largeSlot, mostRefs))
			break
		}
	}
	if o.NoSQLite && o.Postgres == "" {
		errs = append(errs, errors.New("nothing to measure: give the URL of a PostgreSQL database, or do not leave SQLite out"))
	}
	return errors.Join(errs...)
}

func (o *Options) fill() {
	rounds, absorbs, renewing := defaultRounds, 5, time.Second
	if o.Quick {
		rounds, absorbs, renewing = 1, 2, 100*time.Millisecond
	}
	o.Rounds, o.Absorbs = cmp.Or(o.Rounds, rounds), cmp.Or(o.Absorbs, absorbs)
	o.Renewing = cmp.Or(o.Renewing, renewing)
}

// sizes of a database.
func (o *Options) sizes(most int) []int {
	switch {
	case len(o.Refs) > 0:
		return o.Refs
	case o.Quick:
		return []int{10_000, 20_000}
	case most < mostRefs:
		return []int{10_000, 1_000_000}
	default:
		return []int{10_000, 1_000_000, mostRefs}
	}
}

// kind is a database to measure.
type kind struct {
	name string
	most int // refs, by default
	make func(ctx context.Context) (*place, error)
}

func (o *Options) kinds() []kind {
	var all []kind
	if !o.NoSQLite {
		all = append(all, kind{"sqlite", mostSQLite, func(ctx context.Context) (*place, error) { return inFile(ctx, cmp.Or(o.Dir, os.TempDir())) }})
	}
	if o.Postgres != "" {
		all = append(all, kind{"postgres", mostRefs, func(ctx context.Context) (*place, error) { return inSchema(ctx, o.Postgres) }})
	}
	return all
}

// Run measures, and removes what it made on every way out.
func Run(ctx context.Context, o Options) (Report, error) {
	r := Report{Cores: runtime.GOMAXPROCS(0), Quick: o.Quick}
	if err := o.Validate(); err != nil {
		return r, err
	}
	o.fill()
	r.Rounds = o.Rounds
	b := bench{o: &o}
	for _, k := range o.kinds() {
		b.total += len(o.sizes(k.most)) * (o.Rounds + 1)
	}
	for _, k := range o.kinds() {
		d := Database{Name: k.name}
		for _, refs := range o.sizes(k.most) {
			s, err := b.size(ctx, k, refs)
			if err != nil {
				return r, fmt.Errorf("%s, %s refs: %w", k.name, counted(refs), err)
			}
			d.Sizes = append(d.Sizes, s)
		}
		compare(&d)
		r.Databases = append(r.Databases, d)
	}
	r.Expected, r.Notes = expected(&r), pageNotes(&r)
	return r, nil
}

// bench is a run.
type bench struct {
	o           *Options
	done, total int
}

func (b *bench) step(k kind, refs int, now string) {
	if b.o.Progress != nil {
		b.o.Progress(b.done, b.total, fmt.Sprintf("%s, %s refs: %s", k.name, counted(refs), now))
	}
	b.done++
}

// size measures a database with so many refs.
func (b *bench) size(ctx context.Context, k kind, refs int) (s Sized, err error) {
	s = Sized{Refs: refs}
	samples := map[string][]sample{}
	catalogs, rounds := 1, b.o.Rounds
	if refs <= madeAnew {
		catalogs, rounds = b.o.Rounds, 1
	}
	for n := range catalogs {
		if n == 0 {
			b.step(k, refs, "fill")
		}
		if err := b.catalog(ctx, k, rounds, &s, samples); err != nil {
			return s, err
		}
	}
	for _, name := range names {
		s.Verbs = append(s.Verbs, summed(name, samples[name], samples[bareOf(name)]))
	}
	return s, nil
}

// catalog fills one and measures it.
func (b *bench) catalog(ctx context.Context, k kind, rounds int, s *Sized, samples map[string][]sample) (err error) {
	p, err := k.make(ctx)
	if err != nil {
		return err
	}
	// A crash before this leaves the place, under a name that says whose it was.
	defer func() { err = errors.Join(err, p.close(context.WithoutCancel(ctx))) }()
	c, err := found(ctx, p.cat)
	if err != nil {
		return err
	}
	c.log, _ = p.bare.(logger)
	took, err := c.fill(ctx, s.Refs)
	if err != nil {
		return err
	}
	size, err := p.bare.Size(ctx)
	if err != nil {
		return err
	}
	s.FillSeconds, s.FillPerSec = took.Seconds(), float64(s.Refs)/took.Seconds()
	s.BytesPerRef = float64(size.RefBytes) / float64(s.Refs+deepRefs)
	s.TotalPerRef = float64(size.TotalBytes) / float64(s.Refs+deepRefs)
	for n := range rounds {
		b.step(k, s.Refs, fmt.Sprintf("round %d of %d", n+1, rounds))
		if err := c.round(ctx, p, b.o, samples); err != nil {
			return err
		}
	}
	return nil
}

// summed takes the medians.
func summed(name string, samples, bare []sample) Verb {
	v := Verb{Name: name, Samples: len(samples)}
	if len(samples) == 0 {
		return v
	}
	v.Rows = samples[0].rows
	v.Seconds = median(samples, func(s sample) float64 { return s.took.Seconds() })
	v.PerSec = median(samples, rate)
	v.LogPages = median(samples, func(s sample) float64 { return float64(s.pages) })
	if len(bare) > 0 {
		v.BarePerSec = median(bare, rate)
		v.BareRatio = v.PerSec / v.BarePerSec
	}
	return v
}

func rate(s sample) float64 {
	if s.concurrent {
		return s.perSecond
	}
	return float64(s.rows) / s.took.Seconds()
}

// compare fills in the ratios to the smallest size.
func compare(d *Database) {
	for i := 1; i < len(d.Sizes); i++ {
		for j := range d.Sizes[i].Verbs {
			if small := d.Sizes[0].Verbs[j].Seconds; small > 0 {
				d.Sizes[i].Verbs[j].Ratio = d.Sizes[i].Verbs[j].Seconds / small
			}
		}
	}
}

func median(samples []sample, of func(sample) float64) float64 {
	v := make([]float64, len(samples))
	for i := range samples {
		v[i] = of(samples[i])
	}
	slices.Sort(v)
	m := (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	if math.IsInf(m, 0) || math.IsNaN(m) {
		return 0
	}
	return m
}
