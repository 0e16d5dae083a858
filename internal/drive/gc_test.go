package drive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

func TestGCJudges(t *testing.T) {
	o := options(t, GC)
	s, err := found(t.Context(), GC, &o)
	if err != nil {
		t.Fatal(err)
	}
	good, err := observeGC(t.Context(), &o, s)
	if err := errors.Join(err, s.close(t.Context())); err != nil {
		t.Fatal(err)
	}
	mustFail(t, good.judge())
	mustAllFail(t, (&retained{}).judge())
	for name, c := range map[string]struct {
		breakIt func(s *retained)
		want    []string
	}{
		"nothing unlinked":     {func(s *retained) { s.after = s.before }, []string{"bounded"}},
		"ahead of consumer":    {func(s *retained) { s.ack = s.watermark - 1; s.cursor = s.ack }, []string{"bounded"}},
		"old files stand":      {func(s *retained) { s.base-- }, []string{"bounded"}},
		"a row in the middle":  {func(s *retained) { s.rows = slices.Delete(s.rows, 2, 3) }, []string{"gapless_from_base", "retained_zero_loss"}},
		"the first row":        {func(s *retained) { s.rows = s.rows[1:] }, []string{"gapless_from_base", "retained_zero_loss"}},
		"a payload":            {func(s *retained) { s.rows[3].Payload = "" }, []string{"retained_zero_loss"}},
		"reclaimed is served":  {func(s *retained) { s.below = nil }, []string{"reclaimed_absent"}},
		"reclaimed is damage":  {func(s *retained) { s.below = segment.ErrCorrupt }, []string{"reclaimed_absent"}},
		"another base is told": {func(s *retained) { s.below = &localtier.NotLocalError{First: 1} }, []string{"reclaimed_absent"}},
		"row lost in restart":  {func(s *retained) { s.restarted = s.restarted[1:] }, []string{"restart_ok"}},
		"served after restart": {func(s *retained) { s.belowThen = nil }, []string{"restart_ok"}},
		"cursor lost":          {func(s *retained) { s.cursor = 0 }, []string{"restart_ok"}},
		"seq used again":       {func(s *retained) { s.next = 1 }, []string{"restart_ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			s.rows, s.restarted = slices.Clone(good.rows), slices.Clone(good.restarted)
			c.breakIt(&s)
			mustFail(t, s.judge(), c.want...)
		})
	}
}

// TestGCBroken: the directory itself is broken around retention.
func TestGCBroken(t *testing.T) {
	newest := func(s *site) (string, error) {
		files, err := segmentFiles(s.diskDir("0", 0))
		if err != nil || len(files) < 3 {
			return "", errors.Join(err, errors.New("too few segments"))
		}
		return files[len(files)-2], nil
	}
	t.Run("a retained segment is gone", func(t *testing.T) {
		breaking(t, GC, "killed", func(_ context.Context, s *site) error {
			path, err := newest(s)
			return errors.Join(err, os.Remove(path))
		}, "restart_ok")
	})
	t.Run("a reclaimed segment is left", func(t *testing.T) {
		breaking(t, GC, "retained", func(_ context.Context, s *site) error {
			files, err := segmentFiles(s.diskDir("0", 0))
			if err != nil {
				return err
			}
			for i := range 100 { // more files than before, whatever they are
				if err := os.WriteFile(filepath.Join(filepath.Dir(files[0]), "left"+string(rune('a'+i%26))+string(rune('a'+i/26))+".seg"), nil, 0o600); err != nil {
					return err
				}
			}
			return nil
		}, "bounded")
	})
	t.Run("the consumer is far behind", func(t *testing.T) {
		o := options(t, GC)
		o.MinRetained = MaxMinRetained
		r := mustRun(t, GC, o)
		if r.Holds() || r.Stopped == nil {
			t.Fatalf("nothing was given up, and it holds: %+v", r)
		}
		for _, c := range r.Claims {
			if !r.Unjudged(c) {
				t.Errorf("%s is judged by what was never read", c.Name)
			}
		}
	})
}

// TestGCOptionsThatJudgeNothing: segments so large that the consumer passes none are
// refused, and what the refusal says would do does.
func TestGCOptionsThatJudgeNothing(t *testing.T) {
	for _, name := range []string{GC, SharedGC} {
		o := options(t, name)
		o.SegmentBytes = 100_000
		_, err := Run(t.Context(), name, o)
		if !errors.Is(err, ErrOptions) {
			t.Fatalf("%s: %v", name, err)
		}
		var given, acked, events int
		var size, least int64
		_, text, _ := strings.Cut(err.Error(), "--segment-bytes ")
		if _, err := fmt.Sscanf(text, "%d: the consumer acknowledges %d of --events %d, which fill no segment of that size, so nothing could be given up: give --segment-bytes %d or less, or --events %d or more",
			&given, &acked, &events, &size, &least); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if name == SharedGC { // takes graces; the owner's run is the same
			continue
		}
		for _, do := range []func(o *Options){
			func(o *Options) { o.SegmentBytes = size },
			func(o *Options) { o.Events, o.SegmentBytes = int(least), 100_000 },
		} {
			o := options(t, name)
			do(&o)
			if r := mustRun(t, name, o); !r.Holds() {
				t.Errorf("%+v: %v", o, r.Divergence())
			}
		}
	}
	o := options(t, GC)
	o.SegmentBytes = MaxSegmentBytes // no number of events would do
	if err := o.Validate(GC); !errors.Is(err, ErrOptions) || strings.Contains(err.Error(), "or more") {
		t.Error(err)
	}
}
