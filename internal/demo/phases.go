package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// options of a run.
type options struct {
	root   string // of the repository
	source string // of the corpus
	dir    string // of the deployment; must be empty
	shards int
	keep   func(i int, p *pkg) bool // nil: all packages
	out    io.Writer
	// backend opens the bucket for the comparison and says with which flags the
	// binary finds it.
	backend backend
}

// backend is where the bucket is.
type backend struct {
	flags []string
	env   []string
	open  func(ctx context.Context) (objstore.Driver, error)
}

// story is a run under way.
type story struct {
	options
	bin  binary
	pkgs []*pkg
	rows int64
	raw  int64
	// requests of up and of the auditor so far.
	requests map[string]int64
	slots    int64 // before the settle
}

// counts are what status and fsck print, as far as the demo looks.
type status struct {
	Objects map[string]struct{ Objects, Bytes int64 } `json:"objects"`
	Markers map[string]struct{ Standing int64 }       `json:"markers"`
	Intents map[string]int64                          `json:"intents"`
}

// tell runs the phases in order and stops at the first that fails.
func tell(ctx context.Context, o options) error {
	s := &story{options: o}
	for _, phase := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"build the binary", s.build},
		{"read the corpus", s.collect},
		{"append over HTTP, stop, publish", s.append},
		{"delete the writer's disk, compare", s.compareCold},
		{"settle, audit until dry", s.settle},
		{"compare", s.compare},
		{"trim every second stream, delete every tenth", s.trim},
		{"audit until dry", s.auditUntilDry},
		{"fsck", s.fsck},
		{"compare what remains", s.compare},
	} {
		start := time.Now()
		if err := phase.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		fmt.Fprintf(s.out, "%7.1f s  %s\n", time.Since(start).Seconds(), phase.name)
	}
	return nil
}

func (s *story) build(ctx context.Context) error {
	s.bin = binary{path: filepath.Join(s.dir, "strandline"), backend: s.backend.flags, env: s.backend.env}
	return build(ctx, s.root, s.bin.path)
}

func (s *story) collect(context.Context) error {
	all, err := corpus(s.source)
	if err != nil {
		return err
	}
	for i, p := range all {
		if s.keep == nil || s.keep(i, p) {
			s.pkgs = append(s.pkgs, p)
		}
	}
	return nil
}

func (s *story) append(ctx context.Context) error {
	up, err := s.bin.up(ctx, "--shards", fmt.Sprint(s.shards))
	if err != nil {
		return err
	}
	loadErr := load(ctx, up.url, s.pkgs)
	peak, err := up.stop()
	if err := errors.Join(loadErr, err); err != nil {
		return err
	}
	for _, p := range s.pkgs {
		s.rows += int64(p.rows)
		s.raw += p.bytes
	}
	if peak > maxPeak {
		return fmt.Errorf("up took %d MiB of memory, more than %d", peak>>20, int64(maxPeak)>>20)
	}
	s.requests = map[string]int64{}
	addUp(s.requests, up.stopped.Requests)
	fmt.Fprintf(s.out, "           %d streams, %d rows, %.1f MiB; peak memory of up %d MiB; its requests %v\n",
		len(s.pkgs), s.rows, float64(s.raw)/(1<<20), peak>>20, up.stopped.Requests)
	st, err := s.objects(ctx, "before settle")
	if err == nil {
		s.slots = st.Objects["slot"].Objects
	}
	return err
}

// What a run may take at most, with default sizes.
const (
	maxPeak  = 512 << 20
	maxPerGB = 400 // PUT-like requests, and GETs, per GB of rows until all is settled
	// enough rows for the fixed cost of a start to be a small part of it
	enoughBytes = 64 << 20
)

func (s *story) objects(ctx context.Context, when string) (*status, error) {
	st, err := s.status(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(s.out, "           objects %s:", when)
	for _, kind := range []string{"slot", "stream", "pack", "head", "record", "unknown"} {
		if c := st.Objects[kind]; c.Objects > 0 {
			fmt.Fprintf(s.out, " %s %d (%.1f MiB)", kind, c.Objects, float64(c.Bytes)/(1<<20))
		}
	}
	fmt.Fprintln(s.out)
	return st, nil
}

func (s *story) status(ctx context.Context) (*status, error) {
	var st status
	return &st, s.bin.json(ctx, &st, []int{0}, "status")
}

func (s *story) compareCold(ctx context.Context) error {
	if err := os.RemoveAll(filepath.Join(s.dir, "writer")); err != nil {
		return err
	}
	return s.compare(ctx)
}

// compare reads everything back in this process, with the product's reader.
func (s *story) compare(ctx context.Context) (err error) {
	cat, err := openCatalog(ctx, filepath.Join(s.dir, "catalog.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cat.Close()) }()
	driver, err := s.backend.open(ctx)
	if err != nil {
		return err
	}
	store, err := objstore.New(driver, objstore.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	reader, err := coldload.New(cat, objstore.Classes{string(segment.ClassStandard): {store}}, coldload.Config{})
	if err != nil {
		return err
	}
	live := slices.DeleteFunc(slices.Clone(s.pkgs), func(p *pkg) bool { return p.deleted })
	compared, err := verify(ctx, reader, live)
	fmt.Fprintf(s.out, "           %d rows of %d streams compared, %d requests\n", compared, len(live), store.Counters().Total())
	return err
}

func (s *story) trim(ctx context.Context) error {
	for i, p := range s.pkgs {
		switch {
		case i%10 == 9:
			if err := s.bin.json(ctx, nil, []int{0}, "rm", p.name); err != nil {
				return err
			}
			p.deleted = true
		case i%2 == 0 && p.rows > 1:
			p.from = p.rows / 2
			if err := s.bin.json(ctx, nil, []int{0}, "trim", p.name, fmt.Sprint(p.seqOf(p.from))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *story) fsck(ctx context.Context) error {
	var report struct {
		Verdict string           `json:"verdict"`
		Garbage []map[string]any `json:"garbage"`
		Damage  []map[string]any `json:"damage"`
	}
	if err := s.bin.json(ctx, &report, []int{0, 1, 3}, "fsck"); err != nil {
		return err
	}
	if report.Verdict != "clean" {
		return fmt.Errorf("verdict %s: garbage %v, damage %v", report.Verdict, report.Garbage, report.Damage)
	}
	_, err := s.objects(ctx, "at the end")
	return err
}
