package auditor

import (
	"testing"
	"time"
)

func at(sec float64) time.Time { return time.Unix(1_000_000, int64(sec*1e9)) }

// look is a reading taken at once.
func look(database, process float64) reading {
	return reading{database: at(database), before: at(process), after: at(process)}
}

func TestJudgeClock(t *testing.T) {
	const grace = 10 * time.Minute // so the limit is 5 minutes
	for name, c := range map[string]struct {
		looks []reading
		held  []bool
	}{
		"the first look compares nothing":    {[]reading{look(0, 9e6)}, []bool{false}},
		"both pass alike":                    {[]reading{look(0, 0), look(3600, 3600)}, []bool{false, false}},
		"a drift below the limit":            {[]reading{look(0, 0), look(3600, 3301)}, []bool{false, false}},
		"the database steps ahead":           {[]reading{look(0, 0), look(361, 60)}, []bool{false, true}},
		"the database steps back":            {[]reading{look(1000, 0), look(690, 60)}, []bool{false, true}},
		"the process was suspended":          {[]reading{look(0, 0), look(7200, 10)}, []bool{false, true}},
		"held for one grace, then trusted":   {[]reading{look(0, 0), look(1000, 10), look(1590, 600), look(1600, 610)}, []bool{false, true, true, false}},
		"a second step holds anew":           {[]reading{look(0, 0), look(1000, 10), look(3000, 600), look(3010, 610)}, []bool{false, true, true, true}},
		"a slow query is no step":            {[]reading{look(0, 0), {database: at(600), before: at(10), after: at(620)}}, []bool{false, false}},
		"a slow query does not hide a step":  {[]reading{look(0, 0), {database: at(2000), before: at(10), after: at(620)}}, []bool{false, true}},
		"after a slow first look, as little": {[]reading{{database: at(0), before: at(-600), after: at(0)}, look(600, 10)}, []bool{false, false}},
		"exactly the limit":                  {[]reading{look(0, 0), look(310, 10)}, []bool{false, false}},
		"a hair above the limit":             {[]reading{look(0, 0), look(310.1, 10)}, []bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var s clockState
			for i, r := range c.looks {
				var why string
				if s, why = judgeClock(s, r, grace); (why != "") != c.held[i] {
					t.Fatalf("look %d: held %q, want held %v", i, why, c.held[i])
				}
			}
		})
	}
}

func TestJudgeClockWithAShortGrace(t *testing.T) {
	s, _ := judgeClock(clockState{}, look(0, 0), time.Second)
	if _, why := judgeClock(s, look(1.6, 1), time.Second); why == "" {
		t.Error("a step of more than half the grace was not seen")
	}
	if _, why := judgeClock(s, look(1.4, 1), time.Second); why != "" {
		t.Errorf("a step of less than half the grace holds: %s", why)
	}
}

func TestJudgeStore(t *testing.T) {
	const grace = 10 * time.Minute
	for _, c := range []struct {
		store, database float64
		held            bool
	}{{0, 0, false}, {0, 300.9, false}, {300.9, 0, false}, {0, 302, true}, {302, 0, true}} {
		slow := write{at(c.store), at(c.database - 400), at(c.database + 400)}
		if _, why := judgeStore(clockState{}, slow, at(50), grace); why != "" {
			t.Errorf("a slow write is taken for a skew: %s", why)
		}
		s, why := judgeStore(clockState{}, write{at(c.store), at(c.database), at(c.database)}, at(50), grace)
		if (why != "") != c.held {
			t.Errorf("store %v, database %v: held %q, want %v", c.store, c.database, why, c.held)
		}
		if c.held {
			if _, why := judgeClock(s, look(0, 50+599), grace); why == "" {
				t.Error("a skewed store did not hold for a grace")
			}
			if _, why := judgeClock(s, look(0, 50+600), grace); why != "" {
				t.Errorf("held for longer than a grace: %s", why)
			}
		}
	}
}

func TestConfigValidate(t *testing.T) {
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
	for _, c := range []Config{
		{Interval: -1},
		{Lease: time.Millisecond},
		{Batch: 1001},
		{Concurrency: -1},
		{Backoff: 2, BackoffMax: 1},
		{SweepEvery: -1},
		{ConsumerHoldMax: -1},
		{Duties: []string{"retention"}},
	} {
		if c.Validate() == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	for grace, want := range map[time.Duration]time.Duration{time.Second: 3 * time.Second, 10 * time.Minute: MaxLinger} {
		if got := Linger(grace); got != want {
			t.Errorf("linger for a grace of %v is %v, want %v", grace, got, want)
		}
	}
}
