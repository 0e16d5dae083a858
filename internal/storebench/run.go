package storebench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
	"github.com/strandline/strandline/segment"
)

// Rounds of a run, unless the caller says otherwise.
const (
	DefaultRounds = 5
	QuickRounds   = 3
)

// Options shape a run.
type Options struct {
	Quick    bool
	Rounds   int                               // 0: DefaultRounds, or QuickRounds
	Only     *regexp.Regexp                    // cells whose operation matches; nil: all
	Progress func(done, total int, now string) // before each measurement; nil: no one looks
	Bare     []Contender                       // beside ours; the first is what ratios are taken to

	limit time.Duration // of the run, runTime but for tests
}

// runTime bounds a run: a doctor that starts meanwhile, a writer's among them, takes keys of
// LeftoverAge for those of a run that was killed.
const runTime = doctor.LeftoverAge * 3 / 4

var errLong = fmt.Errorf("the run took longer than %v: measure less, with --quick, --only or fewer --rounds", runTime)

// Prefix is what the keys of a run begin with: a doctor's, whose next run takes along
// what a killed measurement left.
const Prefix = segment.DoctorPrefix + "bench-"

// bench is a run.
type bench struct {
	store *objstore.Store
	o     Options
	dir   string // Prefix/<id>/
	large []byte // the body of all writes: no one compares them
	slot  objstore.CopySource
	room  chan []byte // what reads fill, as many as are in flight; of one measurement
}

// into lends a buffer of a large read until back is called.
func (b *bench) into() (buf []byte, back func()) {
	select {
	case buf = <-b.room:
	default:
		buf = make([]byte, largeBytes)
	}
	return buf, func() { b.room <- buf }
}

// Run measures and cleans up. What it wrote is deleted on every way out; a failure of that
// is in the error, with the prefix to delete.
func Run(ctx context.Context, store *objstore.Store, o Options) (_ Report, err error) {
	if o.Rounds == 0 {
		o.Rounds = DefaultRounds
		if o.Quick {
			o.Rounds = QuickRounds
		}
	}
	if o.limit == 0 {
		o.limit = runTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, errLong)
	defer cancel()
	b := &bench{store: store, o: o, dir: Prefix + uuid.NewString() + "/", large: noise(largeBytes)}
	report := Report{Store: store.Name(), Prefix: b.dir, Quick: o.Quick, Rounds: o.Rounds}
	if _, err := store.PutOnce(ctx, b.dir+"begin", nil, nil); err != nil {
		// A crash or a lost answer here leaves one empty object under Prefix.
		return report, errors.Join(fmt.Errorf("the store takes no writes under %s: %w", Prefix, err), Clean(ctx, store, b.dir))
	}
	defer func() {
		if err != nil && errors.Is(context.Cause(ctx), errLong) {
			err = fmt.Errorf("%w (%s)", errLong, err.Error()) // its kind would say: try again
		}
		err = errors.Join(err, Clean(ctx, store, b.dir))
	}()
	if err := b.sources(ctx); err != nil {
		return report, err
	}
	if len(o.Bare) == 0 {
		report.Notes = append(report.Notes, "no bare client to measure beside: this kind of store has none")
	}
	all := append([]Contender{ours(store)}, o.Bare...)
	report.Cells, err = b.table(ctx, all)
	return report, err
}

// table runs all cells.
func (b *bench) table(ctx context.Context, all []Contender) ([]Result, error) {
	var chosen []cell
	for _, c := range cells(b.store.Capabilities(), b.o.Quick) {
		if b.o.Only == nil || b.o.Only.MatchString(fmt.Sprintf("%s x%d", c.name, c.inFlight)) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no cell matches %q: give part of a name such as 'get 8 MiB x16'", b.o.Only)
	}
	var out []Result
	for i, c := range chosen {
		if c.skip != "" {
			out = append(out, Result{Operation: c.name, OperationBytes: c.bytes, InFlight: c.inFlight, Skipped: c.skip})
			continue
		}
		r, err := b.row(ctx, c, all, func(done int, name string) {
			if b.o.Progress != nil {
				per := b.o.Rounds * len(all)
				b.o.Progress(i*per+done, len(chosen)*per, fmt.Sprintf("%s x%d: %s", c.name, c.inFlight, name))
			}
		})
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
	return out, nil
}

// row runs one cell: each round has every contender once, there and back: who comes
// first, and after whom, is shared evenly.
func (b *bench) row(ctx context.Context, c cell, all []Contender, progress func(done int, name string)) (Result, error) {
	samples := make([][]sample, len(all))
	names := make([]string, len(all))
	for i, who := range all {
		names[i] = who.Name
	}
	for round := range b.o.Rounds {
		for turn := range all {
			i := turn
			if round%2 == 1 {
				i = len(all) - 1 - turn
			}
			progress(round*len(all)+turn, names[i])
			s, err := b.one(ctx, c, all[i], fmt.Sprintf("%s%s-%d-%d-%d/", b.dir, plainName(c.name), c.inFlight, i, round))
			if err != nil {
				return Result{}, fmt.Errorf("%s, %d in flight, by %s: %w", c.name, c.inFlight, names[i], err)
			}
			samples[i] = append(samples[i], s)
		}
	}
	return result(c, names, samples), nil
}

// one makes a measurement in a directory of its own, and empties it: a large run would
// else fill the store.
func (b *bench) one(ctx context.Context, c cell, who Contender, dir string) (sample, error) {
	if c.prepare != nil {
		if err := c.prepare(ctx, b, dir); err != nil {
			return sample{}, err
		}
	}
	keys := keysIn(dir, c.n)
	b.room = make(chan []byte, c.inFlight)
	s, err := measure(ctx, who, c.n, c.inFlight, func(ctx context.Context, i int) error { return c.op(ctx, b, who, keys[i], i) })
	if err != nil {
		return s, err // the end of the run cleans up
	}
	return s, Remove(ctx, b.store, dir)
}

// sources writes what reads and copies read.
func (b *bench) sources(ctx context.Context) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i := range sources {
		group.Go(func() error {
			_, err := b.store.PutOnce(gctx, b.source(i), b.large, nil)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("writing what is read: %w", err)
	}
	key := b.dir + "source-slot"
	w := b.store.NewWriter(ctx, key, objstore.UploadOptions{})
	for range slotBytes / largeBytes {
		if _, err := w.Write(b.large); err != nil {
			return errors.Join(fmt.Errorf("writing what is copied: %w", err), w.Abort())
		}
	}
	info, err := w.Commit()
	if err != nil {
		return fmt.Errorf("writing what is copied: %w", err)
	}
	b.slot = objstore.CopySource{Key: key, ETag: info.ETag, Length: slotBytes}
	return nil
}

func (b *bench) source(i int) string { return fmt.Sprintf("%ssource/%02d", b.dir, i%sources) }

// fill puts n small objects into a directory.
func (b *bench) fill(ctx context.Context, dir string, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sources)
	for _, key := range keysIn(dir, n) {
		group.Go(func() error {
			_, err := b.store.PutOnce(ctx, key, b.large[:smallBytes], nil)
			return err
		})
	}
	return group.Wait()
}

func dirOf(key string) string { return key[:strings.LastIndex(key, "/")+1] }

// plainName is an operation's name as part of a key.
func plainName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s))
}

// noise is a body that no layer can compress.
func noise(n int) []byte {
	var seed [32]byte
	out := make([]byte, n)
	_, _ = rand.NewChaCha8(seed).Read(out) // it never fails
	return out
}
