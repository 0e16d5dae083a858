package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/strandline/strandline/bench/peer"
)

// settings are the flags, as the report repeats them.
type settings struct {
	Dir          string
	RecordBytes  []int
	Producers    []int
	Seconds      float64
	WarmSeconds  float64
	Repetitions  int
	Replays      int
	ReplayMiB    int
	SegmentMiB   int
	Only         []string // empty: all, the slow ones with 1 KiB records only
	JSON         string
	TmpfsOK      bool
	ChildTimeout time.Duration

	list bool
}

func parse(args []string, stderr io.Writer) (settings, error) {
	s := settings{RecordBytes: []int{256, 1024, 64 << 10}, Producers: []int{1, 16, 256}}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&s.Dir, "dir", "", "where the logs are made and removed again (default: the directory for temporary files)")
	f.Func("record-bytes", "sizes of records, by commas (default 256,1024,65536)", numbers(&s.RecordBytes, 8, 1<<20))
	f.Func("producers", "producers, by commas (default 1,16,256)", numbers(&s.Producers, 1, 1<<14))
	f.Float64Var(&s.Seconds, "seconds", 0.7, "measured in each cell")
	f.Float64Var(&s.WarmSeconds, "warm-seconds", 0.2, "before that, not counted")
	f.IntVar(&s.Repetitions, "repetitions", 5, "of every cell; 0: none")
	f.IntVar(&s.Replays, "replays", 3, "of every filled log")
	f.IntVar(&s.ReplayMiB, "replay-mib", 1024, "size of the log that is opened and replayed; 0: none")
	f.IntVar(&s.SegmentMiB, "segment-mib", 64, "segment size of all logs that have segments")
	f.Func("only", "implementations, by commas (default: all, the slow ones with 1 KiB records only)", names(&s.Only))
	f.StringVar(&s.JSON, "json", "", "write everything that was measured to this file")
	f.BoolVar(&s.TmpfsOK, "tmpfs", false, "accept a directory on tmpfs, where figures mean nothing")
	f.DurationVar(&s.ChildTimeout, "timeout", 5*time.Minute, "for one measurement")
	f.BoolVar(&s.list, "list", false, "name the implementations and how each is set")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("what is %q? There are only flags (-help)", f.Arg(0))
	}
	return s, s.validate()
}

func (s settings) validate() error {
	switch {
	case s.Seconds <= 0 || s.WarmSeconds < 0:
		return fmt.Errorf("%v seconds after %v of warm-up: give more than nothing", s.Seconds, s.WarmSeconds)
	case s.Repetitions < 0 || s.Replays < 1 || s.ReplayMiB < 0:
		return fmt.Errorf("%d repetitions, %d replays of %d MiB: give positive numbers", s.Repetitions, s.Replays, s.ReplayMiB)
	case s.SegmentMiB < 17 || s.SegmentMiB > 1024:
		return fmt.Errorf("segments of %d MiB: give 17 to 1024", s.SegmentMiB)
	}
	return nil
}

// numbers reads a list of integers.
func numbers(into *[]int, least, most int) func(string) error {
	return func(text string) error {
		*into = nil
		for part := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(part))
			if err != nil || n < least || n > most {
				return fmt.Errorf("%q: give numbers from %d to %d", part, least, most)
			}
			*into = append(*into, n)
		}
		return nil
	}
}

func names(into *[]string) func(string) error {
	return func(text string) error {
		for part := range strings.SplitSeq(text, ",") {
			p, err := peer.Find(strings.TrimSpace(part))
			if err != nil {
				return err
			}
			*into = append(*into, p.Name)
		}
		return nil
	}
}

// peers are the implementations asked for.
func (s settings) peers() (out []peer.Peer) {
	for _, p := range peer.All() {
		if len(s.Only) == 0 || slices.Contains(s.Only, p.Name) {
			out = append(out, p)
		}
	}
	return out
}

// slowRecordBytes are the records that slow peers are measured with.
const slowRecordBytes = 1024

// measured says whether a peer is measured in a cell.
func (s settings) measured(p peer.Peer, c cell) bool {
	if p.Role == peer.Bare {
		return c.Producers == 1
	}
	return !p.Slow || len(s.Only) > 0 || c.RecordBytes == slowRecordBytes
}

const (
	// spareFiles are lent to a log that writes over files: the two that it keeps, and as
	// many as a measurement may fill.
	spareFiles       = 2
	sparePerSecond   = 3e9  // bytes that no log here passes for long
	sparePerProducer = 4000 // rows a second of one producer, likewise
	mostSpareFiles   = 40   // 2.5 GiB, which stay in the page cache
)

// spares is how many files that is in a cell.
func (s settings) spares(c cell) int {
	rate := min(sparePerSecond, float64(c.Producers*sparePerProducer*c.RecordBytes))
	return min(spareFiles+int(rate*(s.Seconds+s.WarmSeconds))/(s.SegmentMiB<<20), mostSpareFiles)
}

// replayBytes is how much of a peer is filled and replayed.
func (s settings) replayBytes(p peer.Peer) int64 {
	n := int64(s.ReplayMiB) << 20
	if p.Slow && len(s.Only) == 0 {
		n /= 4
	}
	return n
}
