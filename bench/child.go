package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/bench/peer"
)

// childFlag makes this program do one task and print its sample.
const childFlag = "-child"

// job is what a child does.
type job string

const (
	jobAppend job = "append"
	jobFill   job = "fill"
	jobOpen   job = "open"
	jobReplay job = "replay"
)

// task is one measurement, for a process of its own.
type task struct {
	Job         job
	Peer        string
	Dir         string // of the log
	RecordBytes int
	Producers   int
	Seconds     float64
	WarmSeconds float64
	Records     int64 // that fill appends and replay must find
	Options     peer.Options
}

// sample is what a child measured; fields of other jobs are zero.
type sample struct {
	Rows            int64   `json:",omitempty"`
	Seconds         float64 `json:",omitempty"`
	RowsPerSecond   float64 `json:",omitempty"`
	P50Micros       float64 `json:",omitempty"`
	P99Micros       float64 `json:",omitempty"`
	AllocsPerRow    float64
	CPUMicrosPerRow float64 `json:",omitempty"`
	WrittenPerByte  float64 `json:",omitempty"`
	OpenMillis      float64 `json:",omitempty"`
	ReplayMBps      float64 `json:",omitempty"`
	PeakMiB         float64 // resident set of the whole process
}

// brief is the sample in a line.
func (s sample) brief(j job) string {
	switch j {
	case jobOpen:
		return fmt.Sprintf("%9.2f ms", s.OpenMillis)
	case jobAppend:
		return fmt.Sprintf("%9.0f rows/s  p50 %7.0f µs", s.RowsPerSecond, s.P50Micros)
	}
	return fmt.Sprintf("%9.0f rows/s", s.RowsPerSecond)
}

// inChild runs a task in a process of its own.
func inChild(ctx context.Context, t task, timeout time.Duration, stderr io.Writer) (sample, error) {
	self, err := os.Executable()
	if err != nil {
		return sample{}, err
	}
	spec, err := json.Marshal(t)
	if err != nil {
		return sample{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var out bytes.Buffer
	c := exec.CommandContext(ctx, self, childFlag, string(spec))
	c.Stdout, c.Stderr = &out, stderr
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w after %v", context.Cause(ctx), timeout)
		}
		return sample{}, err
	}
	var s sample
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		return sample{}, fmt.Errorf("the child said %q: %w", out.String(), err)
	}
	return s, nil
}

func child(spec string, stdout io.Writer) error {
	var t task
	if err := json.Unmarshal([]byte(spec), &t); err != nil {
		return fmt.Errorf("task %q: %w", spec, err)
	}
	s, err := perform(t)
	if err != nil {
		return fmt.Errorf("%s %s: %w", t.Job, t.Peer, err)
	}
	var peak unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &peak); err != nil {
		return err
	}
	s.PeakMiB = float64(peak.Maxrss) / 1024
	return json.NewEncoder(stdout).Encode(s)
}

func perform(t task) (sample, error) {
	p, err := peer.Find(t.Peer)
	if err != nil {
		return sample{}, err
	}
	switch t.Job {
	case jobAppend:
		return measureAppend(p, t)
	case jobFill:
		return fill(p, t)
	case jobOpen:
		return measureOpen(p, t)
	case jobReplay:
		return measureReplay(p, t)
	}
	return sample{}, errors.New("no such job")
}
