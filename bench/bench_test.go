package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the child that a run starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childFlag {
		if err := child(os.Args[2], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestRun is a whole run, small: every kind of measurement gives figures that can be.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out", "bench.json")
	var out, log bytes.Buffer
	err := run(t.Context(), []string{
		"-dir", dir, "-tmpfs", "-json", file, "-only", "strandline wal,prometheus wlog,bare-grow", "-record-bytes", "1024", "-producers", "1,4",
		"-seconds", "0.05", "-warm-seconds", "0.01", "-repetitions", "2", "-replays", "1", "-replay-mib", "2", "-segment-mib", "17",
	}, &out, &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Append) != 5 || len(r.Standing) != 2 || len(r.Failures) != 0 {
		t.Fatalf("%d cells, %d standing logs, failures %v; want 5, 2 and none", len(r.Append), len(r.Standing), r.Failures)
	}
	for _, x := range r.Append {
		s := x.Sample
		if x.N != 2 || s.RowsPerSecond <= 0 || s.P50Micros <= 0 || s.P99Micros < s.P50Micros || s.CPUMicrosPerRow <= 0 || x.Ratio <= 0 {
			t.Errorf("%s × %d: %+v", x.Peer, x.Cell.Producers, x)
		}
		if x.Peer == peerProm && math.Abs(x.Ratio-1) > 1e-9 {
			t.Errorf("the only peer is %v of the best one", x.Ratio)
		}
		if (x.GrowRatio > 0) != (x.Cell.Producers == 1) {
			t.Errorf("%s × %d: p50 is %v of the bare one", x.Peer, x.Cell.Producers, x.GrowRatio)
		}
	}
	for _, x := range r.Standing {
		if x.Bytes != 2<<20 || x.ReplayMBps <= 0 || x.OpenMillis <= 0 {
			t.Errorf("%+v", x)
		}
	}
	for _, want := range []string{r.Machine.Kernel, r.Machine.Go, "1 KiB × 4", "**strandline wal**", "### Expectations"} {
		if want == "" || !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "strandline-bench-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestReplayFindsALoss: a log that does not give back all it was given fails the run.
func TestReplayFindsALoss(t *testing.T) {
	task := task{Job: jobFill, Peer: peerProm, Dir: t.TempDir(), RecordBytes: 64, Producers: 2, Records: 100}
	task.Options.SegmentBytes = 17 << 20
	if _, err := perform(task); err != nil {
		t.Fatal(err)
	}
	task.Job = jobReplay
	if s, err := perform(task); err != nil || s.Rows != 100 {
		t.Fatalf("%d rows, %v", s.Rows, err)
	}
	task.Records++
	if _, err := perform(task); err == nil {
		t.Fatal("a row is missing, and nobody said so")
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for us := range 10_000 {
		h.add(time.Duration(us+1) * time.Microsecond)
	}
	for _, q := range []float64{0.5, 0.99} {
		want := q * 10_000 * float64(time.Microsecond)
		if got := float64(h.quantile(q)); math.Abs(got-want)/want > 0.016 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	for _, d := range []time.Duration{-1, 0, 1, 63, 64, 65, 1000, time.Hour, math.MaxInt64} {
		if got := middleOf(bucketOf(d)); math.Abs(float64(got-max(d, 0))) > 0.016*float64(d)+1 {
			t.Errorf("%d ns is counted as %d ns", d, got)
		}
	}
	if h.count() != 10_000 {
		t.Errorf("counts %d", h.count())
	}
}

// TestRatiosAreWithinRepetitions: each repetition is compared with its own best peer.
func TestRatiosAreWithinRepetitions(t *testing.T) {
	c := cell{1024, 1}
	var samples []taken
	for rep, rates := range [][3]float64{{200, 100, 50}, {30, 10, 20}, {3000, 1000, 10}} {
		for i, name := range []string{"strandline wal", "etcd wal", "raft-wal"} {
			samples = append(samples, taken{jobAppend, rep, name, c, sample{RowsPerSecond: rates[i], P50Micros: 1 / rates[i]}})
		}
	}
	s := settings{RecordBytes: []int{1024}, Producers: []int{1}}
	r := newReport(machine{}, s, samples, nil, time.Second)
	got := r.Append[0]
	if got.Peer != "strandline wal" || got.Ratio != 2 || got.Sample.RowsPerSecond != 200 || math.Abs(got.P50Ratio-0.5) > 1e-9 {
		t.Errorf("%+v", got)
	}
	for _, g := range r.Goals {
		if g.Holds {
			t.Errorf("%s holds, and the shard log was not measured", g.Text)
		}
	}
	r.Standing = []standingRow{{Peer: "strandline wal", PromRatio: 1.3}}
	for _, g := range judge(r) {
		if g.Holds != (g.WAL == 1.3) {
			t.Errorf("%s: %+v", g.Text, g)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(c.of); got != c.want {
			t.Errorf("median of %v is %v", c.of, got)
		}
	}
}

func TestFlagsThatCannotBe(t *testing.T) {
	for _, args := range [][]string{
		{"-record-bytes", "4"}, {"-producers", "0"}, {"-producers", "1,x"}, {"-only", "kafka"}, {"-seconds", "0"}, {"-segment-mib", "16"}, {"append"},
	} {
		if _, err := parse(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
