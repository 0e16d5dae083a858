package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/strandline/strandline/bench/peer"
)

// report is everything that a run gave.
type report struct {
	Machine  machine
	Settings settings
	Seconds  float64 // the whole run
	Append   []row
	Standing []standingRow
	Goals    []judged
	Failures []failure
	Samples  []taken
}

// row is an implementation in a cell: medians over repetitions.
type row struct {
	Peer   string
	Cell   cell
	N      int // repetitions
	Sample sample
	// Ratio is to the rows a second of the fastest peer of the same repetition,
	// P50Ratio to that peer's p50; medians of the ratios.
	Ratio    float64
	P50Ratio float64
	// BareRatio is to the p50 of bare-overwrite, GrowRatio to that of bare-grow; 0
	// where those were not measured.
	BareRatio float64
	GrowRatio float64
}

// standingRow is a standing log: medians over its opens and replays.
type standingRow struct {
	Peer        string
	Bytes       int64
	FillMBps    float64
	OpenMillis  float64
	ReplayMBps  float64
	Ratio       float64 // to the fastest peer's replay of the same repetition
	PromRatio   float64 // to prometheus wlog's
	PeakMiB     float64 // of the replaying process
	OpenPeakMiB float64
}

func newReport(m machine, s settings, samples []taken, failures []failure, took time.Duration) *report {
	r := &report{Machine: m, Settings: s, Samples: samples, Failures: failures, Seconds: took.Seconds()}
	for _, size := range s.RecordBytes {
		for _, producers := range s.Producers {
			for _, p := range s.peers() {
				if row, ok := r.row(p, cell{size, producers}); ok {
					r.Append = append(r.Append, row)
				}
			}
		}
	}
	for _, p := range s.peers() {
		if row, ok := r.standing(p); ok {
			r.Standing = append(r.Standing, row)
		}
	}
	r.Goals = judge(r)
	return r
}

// of are the samples of a kind, by repetition.
func (r *report) of(j job, p string, c cell) map[int]sample {
	out := map[int]sample{}
	for _, t := range r.Samples {
		if t.Job == j && t.Peer == p && t.Cell == c {
			out[t.Repetition] = t.Sample
		}
	}
	return out
}

// best is the fastest peer's sample of each repetition.
func (r *report) best(j job, c cell) map[int]sample {
	out := map[int]sample{}
	for _, p := range r.Settings.peers() {
		if p.Role != peer.Rival {
			continue
		}
		for rep, s := range r.of(j, p.Name, c) {
			if s.RowsPerSecond > out[rep].RowsPerSecond {
				out[rep] = s
			}
		}
	}
	return out
}

func (r *report) row(p peer.Peer, c cell) (row, bool) {
	mine := r.of(jobAppend, p.Name, c)
	if len(mine) == 0 {
		return row{}, false
	}
	best := r.best(jobAppend, c)
	over, grow := r.of(jobAppend, peerBareOverwrite, c), r.of(jobAppend, peerBareGrow, c)
	return row{
		Peer: p.Name, Cell: c, N: len(mine), Sample: medianSample(mine),
		Ratio:     ratio(mine, best, rowsPerSecond),
		P50Ratio:  ratio(mine, best, p50),
		BareRatio: ratio(mine, over, p50),
		GrowRatio: ratio(mine, grow, p50),
	}, true
}

func (r *report) standing(p peer.Peer) (standingRow, bool) {
	c := cell{slowRecordBytes, fillProducers}
	replays, opens := r.of(jobReplay, p.Name, c), r.of(jobOpen, p.Name, c)
	if len(replays) == 0 {
		return standingRow{}, false
	}
	filled := r.of(jobFill, p.Name, c)[0]
	s, o := medianSample(replays), medianSample(opens)
	out := standingRow{
		Peer: p.Name, Bytes: filled.Rows * int64(c.RecordBytes),
		FillMBps: filled.RowsPerSecond * float64(c.RecordBytes) / 1e6, ReplayMBps: s.ReplayMBps,
		Ratio:     ratio(replays, r.best(jobReplay, c), rowsPerSecond),
		PromRatio: ratio(replays, r.of(jobReplay, peerProm, c), rowsPerSecond),
		PeakMiB:   s.PeakMiB, OpenPeakMiB: o.PeakMiB, OpenMillis: o.OpenMillis,
	}
	return out, true
}

// The peers that the report compares with by name.
const (
	peerBareOverwrite = "bare-overwrite"
	peerBareGrow      = "bare-grow"
	peerProm          = "prometheus wlog"
)

func rowsPerSecond(s sample) float64 { return s.RowsPerSecond }
func p50(s sample) float64           { return s.P50Micros }

// ratio is the median over repetitions of mine by other's, 0 if they share none.
func ratio(mine, other map[int]sample, of func(sample) float64) float64 {
	var all []float64
	for rep, s := range mine {
		if o, ok := other[rep]; ok && of(o) > 0 {
			all = append(all, of(s)/of(o))
		}
	}
	return median(all)
}

func medianSample(all map[int]sample) sample {
	of := func(field func(sample) float64) float64 {
		var v []float64
		for _, s := range all {
			v = append(v, field(s))
		}
		return median(v)
	}
	return sample{
		Rows:            int64(of(func(s sample) float64 { return float64(s.Rows) })),
		Seconds:         of(func(s sample) float64 { return s.Seconds }),
		RowsPerSecond:   of(rowsPerSecond),
		P50Micros:       of(p50),
		P99Micros:       of(func(s sample) float64 { return s.P99Micros }),
		AllocsPerRow:    of(func(s sample) float64 { return s.AllocsPerRow }),
		CPUMicrosPerRow: of(func(s sample) float64 { return s.CPUMicrosPerRow }),
		WrittenPerByte:  of(func(s sample) float64 { return s.WrittenPerByte }),
		OpenMillis:      of(func(s sample) float64 { return s.OpenMillis }),
		ReplayMBps:      of(func(s sample) float64 { return s.ReplayMBps }),
		PeakMiB:         of(func(s sample) float64 { return s.PeakMiB }),
	}
}

// median of none is 0; of an even number, the mean of the middle two.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// writeJSON writes everything that was measured; nothing if no file was asked for.
func (r *report) writeJSON(name string) error {
	if name == "" {
		return nil
	}
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}
