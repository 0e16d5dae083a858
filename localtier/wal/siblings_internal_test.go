package wal

import (
	"testing"
	"time"
)

func TestSiblingWaitIsForClosedLoopsOnly(t *testing.T) {
	sync := 200 * time.Microsecond
	for about, c := range map[string]struct {
		s      siblings
		queued int
		want   int
	}{
		"nothing released yet":        {siblings{lastSync: sync}, 3, 0},
		"one producer":                {siblings{released: 1, lastSync: sync}, 0, 0},
		"two producers taking turns":  {siblings{released: 1, lastSync: sync}, 1, 2},
		"half of sixteen queued":      {siblings{released: 8, lastSync: sync}, 8, 16},
		"all of sixteen released":     {siblings{released: 16, lastSync: sync}, 0, 16},
		"a large group":               {siblings{released: 16, bytes: siblingBytes + 1, lastSync: sync}, 0, 0},
		"a sync that costs next to 0": {siblings{released: 16, lastSync: time.Microsecond}, 0, 0},
		"the last waits were in vain": {siblings{released: 16, lastSync: sync, skip: 1}, 0, 0},
	} {
		if got := c.s.target(c.queued); got != c.want {
			t.Errorf("%s: waits for %d frames, want %d", about, got, c.want)
		}
	}
}

// Waits in vain become rare; one that fills brings them back.
func TestSiblingWaitBacksOff(t *testing.T) {
	waits := func(s *siblings, groups int, filled bool) (n int) {
		for range groups {
			s.released = 4
			if s.target(0) > 0 {
				n++
				s.learn(filled)
			}
		}
		return n
	}
	s := siblings{lastSync: time.Millisecond}
	if n := waits(&s, 10_000, false); n < 10 || n > 60 {
		t.Errorf("10,000 open-loop groups had %d waits", n)
	}
	s.skip = 0
	if n := waits(&s, 1000, true); n != 1000 {
		t.Errorf("1,000 closed-loop groups had %d waits", n)
	}
}
