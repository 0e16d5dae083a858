package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/segment"
)

// Sim is one world. Its scheduler runs on the goroutine that called Run, inside a
// testing/synctest bubble.
type Sim struct {
	cfg     Config
	rng     *rand.Rand // the scheduler's own
	mem     *bucket    // the one that decides
	buckets []*bucket  // of the set, that one first
	cat     *memory.Catalog
	model   *model
	check   *checker
	end     time.Time
	wake    chan struct{} // a call parked; capacity 1

	applying sync.Mutex // model, checker: one step at a time

	mu          sync.Mutex // all below
	steps       int
	parked      []*call
	late        []*call
	doomed      []*process
	bill        bill
	direct      bool // calls happen at once: the faults are over
	trace       trace
	cover       Coverage
	terms       map[string]bool // roles that are asked to end in order
	catalogAway time.Time
	stepped     time.Duration // what the database's clock is ahead

	// The scheduler's own.
	events    []event
	lives     map[string]int
	processes map[string]*process // by role
	back      rollback
	followers map[string]*following // by role; Sim.mu
	machines  map[string]*machine
	running   sync.WaitGroup
	auditing  sync.WaitGroup // those of them that audit
	retained  bool           // a policy that gives up was ever set
}

// Result of a run.
type Result struct {
	Seed     uint64
	Steps    int
	Virtual  time.Duration
	Rows     int // acknowledged
	Hash     uint64
	Coverage Coverage
	Findings []string
	Tail     []string
	// RolledBack: the catalog went back before the run ended.
	RolledBack bool
}

// Unhealed says that what was broken is no more than a rolled-back catalog may leave behind. What 03
// promises of one is that it is told, and that nothing more is lost by what follows: no delete,
// no head that goes on. Rows of the commits that were lost, and terms that were given out twice,
// are an operator's to look at (docs/operations.md).
func (r *Result) Unhealed() bool {
	return r.RolledBack && len(r.Findings) > 0 && !slices.ContainsFunc(r.Findings, func(f string) bool {
		return strings.HasPrefix(f, "03 ") || strings.HasPrefix(f, "start")
	})
}

// Err is nil if no rule was broken.
func (r *Result) Err() error {
	if len(r.Findings) == 0 {
		return nil
	}
	return fmt.Errorf("seed %d, step %d:\n  %s\nthe last steps:\n%s", r.Seed, r.Steps, strings.Join(r.Findings, "\n  "), strings.Join(r.Tail, "\n"))
}

// Prepare is called once, before the first bubble of a process.
func Prepare() { segment.KeepCoders(32) }

// Run runs a seed. It must be called inside a bubble of testing/synctest, and returns with
// every goroutine of the run ended.
func Run(cfg Config) Result {
	s := &Sim{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 1)), model: newModel(), wake: make(chan struct{}, 1), cover: Coverage{}, bill: newBill(),
		terms: map[string]bool{}, lives: map[string]int{}, processes: map[string]*process{}, followers: map[string]*following{}, back: newRollback(), machines: map[string]*machine{},
	}
	s.trace = trace{all: cfg.Trace, began: time.Now()}
	s.check = newChecker(s)
	s.end = time.Now().Add(cfg.Span)
	s.build()
	if !s.check.broken() {
		s.start()
		s.schedule()
		if s.cfg.calm {
			s.endPasses()
		}
		s.stop()
	}
	if !s.check.broken() {
		s.settleAll()
	}
	return s.result()
}

func (s *Sim) result() Result {
	r := Result{
		Seed: s.cfg.Seed, Steps: s.steps, Virtual: time.Since(s.trace.began), Hash: s.trace.hash, Coverage: s.cover,
		Findings: s.check.findings, RolledBack: s.back.happened(),
	}
	for _, rec := range s.model.records {
		if rec.acked != "" {
			r.Rows++
		}
	}
	if len(r.Findings) > 0 {
		r.Tail = s.trace.tail(80)
	}
	return r
}

// build makes the buckets, the catalog and the disks, and founds the deployment.
func (s *Sim) build() {
	for i := range max(1, s.cfg.Buckets) {
		s.buckets = append(s.buckets, s.newBucket(i))
	}
	s.mem = s.buckets[0]
	s.cat = memory.New(memory.Options{Clock: s.databaseNow, Skip: s.cfg.Hooks.Skip})
	for i := range s.cfg.Writers {
		name := fmt.Sprintf("w%d", i+1)
		disk := powercut.New()
		disk.Quiet()
		s.machines[name] = &machine{name: name, disk: disk}
	}
	s.direct = true
	if err := s.found(); err != nil {
		s.check.violated("start", "found the deployment: %v", err)
	}
	s.direct = false
}

func (s *Sim) found() error {
	p, err := s.newProcess("found")
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := s.cat.Init(ctx, uuid.New()); err != nil {
		return err
	}
	if _, err := s.cat.SeedReadGrace(ctx, s.cfg.ReadGrace); err != nil {
		return err
	}
	if _, err := s.cat.SeedOrphanGrace(ctx, s.cfg.OrphanGrace); err != nil {
		return err
	}
	if _, err := check.Ensure(ctx, p.catalog, p.classes); err != nil {
		return err
	}
	_, err = check.EnsureEpoch(ctx, p.catalog, p.classes, catalog.Topology{
		Epoch: 1, Shards: s.cfg.Shards, Class: segment.ClassStandard, Buckets: s.bucketNames(), Settle: true, State: catalog.TopologyOpen,
	})
	return err
}

// epochs are those of the catalog.
func (s *Sim) epochs() (out []catalog.Topology) {
	s.cat.View(func(v memory.View) {
		for t := range v.Topologies() {
			out = append(out, *t)
		}
	})
	return out
}

// databaseNow is the database's clock.
func (s *Sim) databaseNow() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Round(0).Add(s.stepped)
}

// leastGrace is the least time between a death and a delete: the read grace, less what
// the auditors let the database's clock step unseen, if it did.
func (s *Sim) leastGrace() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stepped != 0 {
		return s.cfg.ReadGrace / 2
	}
	return s.cfg.ReadGrace
}

func (s *Sim) setDirect(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.direct = on
}

func (s *Sim) isDirect() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.direct
}

// start begins all processes and draws the events.
func (s *Sim) start() {
	for i := range s.cfg.Writers {
		s.begin(fmt.Sprintf("w%d", i+1))
	}
	for i := range s.cfg.Auditors {
		s.begin(fmt.Sprintf("a%d", i+1))
	}
	for i := range s.cfg.Readers {
		s.begin(fmt.Sprintf("r%d", i+1))
	}
	for i := range s.cfg.Followers {
		s.begin(fmt.Sprintf("f%d", i+1))
	}
	s.drawEvents()
}

// begin starts a process of a role.
func (s *Sim) begin(name string) {
	p, err := s.newProcess(name)
	if err != nil {
		s.check.violated("start", "%s: %v", name, err)
		return
	}
	s.processes[name] = p
	run := p.runReader
	switch name[0] {
	case 'w':
		p.machine = s.machines[name]
		run = p.runWriter
	case 'a':
		s.auditing.Add(1)
		run = p.runAuditor
	case 'f':
		run = p.runFollower
	}
	s.running.Go(run)
}

// stop kills all processes, and lets what they had sent arrive, or not.
func (s *Sim) stop() {
	for _, name := range sortedKeys(s.processes) {
		s.kill(s.processes[name], "the end")
	}
	s.setDirect(true)
	s.running.Wait()
	for len(s.late) > 0 && !s.check.broken() {
		s.applyLate(s.rng.IntN(len(s.late)))
	}
	s.setDirect(false)
}
