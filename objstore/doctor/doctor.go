package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/objstore"
)

const (
	// maxList is what S3 gives in a page.
	maxList = 1000
	// runTime bounds a run: what it makes must not grow as old as a killed run's leftovers.
	runTime = LeftoverAge / 2
	// checkTime bounds one check: the longest moves some 20 MiB.
	checkTime = time.Minute
	// cleanupTime is for a few requests; a store that needs longer is away.
	cleanupTime = 20 * time.Second
	// callGrace is how long a write under way may still be answered after Ctrl-C.
	callGrace = 5 * time.Second
	// tries of a check that ended without a verdict: one fault on the way is no finding.
	tries = 2
)

// Options of Run and Quick.
type Options struct {
	// Prefix is where the throw-away keys stand; it ends in "/". The caller's key scheme
	// must know it.
	Prefix string
	// AcceptVersioned: a bucket that keeps versions, or is locked, is no obstacle.
	AcceptVersioned bool
	// ReadOnly: only ask for the bucket's settings, write nothing (Quick).
	ReadOnly bool
	// Limit of Quick. Default QuickTime.
	Limit time.Duration
	// Clock is this machine's; default time.Now.
	Clock func() time.Time
	// Progress is told before each check, if set.
	Progress func(done, total int, check string)
}

func (o Options) complete() (Options, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Limit == 0 {
		o.Limit = QuickTime
	}
	if !strings.HasSuffix(o.Prefix, "/") || o.Limit < 0 {
		return o, &objstore.Error{Op: "doctor", Key: o.Prefix, Kind: objstore.ErrInvalid, Err: errors.New("the prefix must end in a slash, and the limit be positive")}
	}
	return o, nil
}

// session is one run over one bucket.
type session struct {
	d       *ledger
	opts    Options
	dir     string // PREFIX/UUID/
	start   time.Time
	results []Result
	lacks   []func(*objstore.Capabilities)
	swept   int

	settings answer // of the bucket; asked once
	fixtures
}

func newSession(d objstore.Driver, opts Options, grace time.Duration) *session {
	return &session{d: newLedger(d, grace), opts: opts, dir: opts.Prefix + uuid.NewString() + "/", start: time.Now()}
}

// Run proves every primitive on the bucket behind d, and leaves nothing behind. d is the
// bare driver: objstore.Store.Driver.
//
// A nil error means that the report is whole; whether the store will do is Report.OK. An
// error means that the store could not be reached, or ctx ended: the report then holds what
// was seen until then.
func Run(ctx context.Context, d objstore.Driver, opts Options) (_ Report, err error) {
	opts, err = opts.complete()
	if err != nil {
		return Report{}, err
	}
	s := newSession(d, opts, callGrace)
	if err := s.reach(ctx); err != nil {
		return s.report(nil), err
	}
	limited, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	err = s.all(limited)
	return s.report(s.cleanup(ctx, cleanupTime)), err
}

// reach asks for one key: a bucket that is missing or away is no matter for 40 checks.
func (s *session) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	_, err := s.d.List(ctx, s.opts.Prefix, "", "", 1)
	if errors.Is(err, objstore.ErrUnavailable) || errors.Is(err, objstore.ErrInvalid) {
		return fmt.Errorf("the store cannot be reached: %w", err)
	}
	return nil
}

func (s *session) all(ctx context.Context) error {
	s.sweep(ctx)
	list := checks()
	for i, c := range list {
		if s.opts.Progress != nil {
			s.opts.Progress(i, len(list), c.name)
		}
		r := s.try(ctx, c, 1)
		if r.Outcome == Failed && ctx.Err() == nil {
			if err := s.reach(ctx); err != nil {
				return err // the store went away
			}
			r = s.try(ctx, c, tries)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.take(c, r)
	}
	for _, c := range permissions() {
		s.results = append(s.results, s.permit(c))
	}
	return nil
}

// try runs a check under keys of its own.
func (s *session) try(ctx context.Context, c check, attempt int) Result {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	t := &trial{session: s, dir: fmt.Sprintf("%s%s-%d/", s.dir, c.name, attempt)}
	before := s.d.total()
	r := judge(c, c.run(ctx, t))
	r.Requests = s.d.total() - before
	if r.Outcome == OK {
		r.Detail = t.detail
	}
	return r
}

// take enters a result.
func (s *session) take(c check, r Result) {
	if c.lacks != nil && (r.Outcome == Missing || r.Outcome == Denied) {
		s.lacks = append(s.lacks, c.lacks)
	}
	s.results = append(s.results, r)
}

// report gathers. The capabilities are read now: some drivers learn theirs from answers.
func (s *session) report(left []string) Report {
	declared := s.d.Capabilities()
	found := declared
	for _, lack := range s.lacks {
		lack(&found)
	}
	return Report{
		Store: s.d.Name(), Results: s.results, Capabilities: found, Requests: s.d.spent(),
		Swept: s.swept, Left: append([]string{}, left...), Took: time.Since(s.start), declared: declared,
	}
}
