package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/strandline/strandline/bench/peer"
)

// taken is a sample and what it is of.
type taken struct {
	Job        job
	Repetition int
	Peer       string
	Cell       cell
	Sample     sample
}

// failure is a measurement that gave no figure.
type failure struct {
	Job        job
	Repetition int
	Peer       string
	Cell       cell
	Error      string
}

// runner goes through all measurements, one at a time.
type runner struct {
	settings settings
	base     string
	log      io.Writer
	samples  []taken
	failures []failure
}

func (r *runner) all(ctx context.Context) error {
	if err := r.appends(ctx); err != nil {
		return err
	}
	return r.replays(ctx)
}

// appends: repetition, then cell, then implementation. Each repetition begins with
// another implementation, so that none always follows the same one.
func (r *runner) appends(ctx context.Context) error {
	peers := r.settings.peers()
	spares, err := peer.NewSpares(filepath.Join(r.base, "spares"), r.settings.SegmentMiB<<20)
	if err != nil {
		return err
	}
	for rep := range r.settings.Repetitions {
		for _, size := range r.settings.RecordBytes {
			for _, producers := range r.settings.Producers {
				c := cell{size, producers}
				for i := range peers {
					p := peers[(i+rep)%len(peers)]
					if !r.settings.measured(p, c) {
						continue
					}
					if err := r.append(ctx, rep, p, c, spares); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// append measures one cell in a new directory. An error is not the measurement's.
func (r *runner) append(ctx context.Context, rep int, p peer.Peer, c cell, spares *peer.Spares) error {
	dir := filepath.Join(r.base, "cell")
	t := task{Job: jobAppend, Peer: p.Name, Dir: dir, RecordBytes: c.RecordBytes, Producers: c.Producers}
	if p.SpareDir != nil {
		t.Options.Spares = r.settings.spares(c)
		if err := spares.Lend(p.SpareDir(dir), t.Options.Spares); err != nil {
			return err
		}
	}
	r.one(ctx, rep, t)
	if p.SpareDir != nil {
		if err := spares.TakeBack(dir); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// fillProducers fill fast, whatever the log.
const fillProducers = 256

// replays fills all logs, and then opens and replays them in turn.
func (r *runner) replays(ctx context.Context) error {
	const size = slowRecordBytes
	var filled []task
	for _, p := range r.settings.peers() {
		n := r.settings.replayBytes(p) / size
		if p.Replay == nil || n == 0 {
			continue
		}
		t := task{Peer: p.Name, Dir: filepath.Join(r.base, "standing-"+p.Name), RecordBytes: size, Producers: fillProducers, Records: n}
		t.Job = jobFill
		t.Options = peer.Options{Keep: true, Unsynced: true}
		if r.one(ctx, 0, t) {
			filled = append(filled, t)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	for rep := range r.settings.Replays {
		for i := range filled {
			t := filled[(i+rep)%len(filled)]
			t.Options.Unsynced = false
			for _, t.Job = range []job{jobOpen, jobReplay} {
				r.one(ctx, rep, t)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// one performs a task and says whether it gave a sample.
func (r *runner) one(ctx context.Context, rep int, t task) bool {
	t.Seconds, t.WarmSeconds = r.settings.Seconds, r.settings.WarmSeconds
	t.Options.SegmentBytes = r.settings.SegmentMiB << 20
	c := cell{t.RecordBytes, t.Producers}
	begin := time.Now()
	s, err := inChild(ctx, t, r.settings.ChildTimeout, r.log)
	what := fmt.Sprintf("%d/%d %-6s %-16s %6d B × %-3d", rep+1, r.settings.Repetitions, t.Job, t.Peer, t.RecordBytes, t.Producers)
	took := time.Since(begin).Round(10 * time.Millisecond)
	if err != nil {
		r.failures = append(r.failures, failure{t.Job, rep, t.Peer, c, err.Error()})
		fmt.Fprintf(r.log, "%s failed after %v: %v\n", what, took, err)
		return false
	}
	r.samples = append(r.samples, taken{t.Job, rep, t.Peer, c, s})
	fmt.Fprintf(r.log, "%s %s  (%v)\n", what, s.brief(t.Job), took)
	return true
}
