package main

import (
	"context"
	"fmt"
	"time"

	"github.com/strandline/strandline/catalog"
)

// graces are short, so that a run shows the whole life of an object in seconds.
var graces = []string{"--auditor-read-grace", "1s", "--auditor-orphan-grace", "10s", "--settle-age", "0s"}

func (s *story) settle(ctx context.Context) error {
	if err := s.auditUntilDry(ctx); err != nil {
		return err
	}
	st, err := s.status(ctx)
	if err != nil {
		return err
	}
	if n := st.Objects["slot"].Objects; n != 0 {
		return fmt.Errorf("%d slots outlived their grace", n)
	}
	// A slow machine seals by age, too, and looks at ownerless chains more than once:
	// such a slot costs its PUT and its GET, each such look a GET a chain. Before a head is
	// written and before a delete all heads are looked at, unless that was done within an
	// eighth of the grace: with a grace of a second, before each chain's.
	gb := float64(s.raw) / 1e9
	byAge, looks := float64(s.slots-int64(s.shards))/gb, float64(2*s.shards+2*s.shards*s.shards)/gb
	if puts, gets := s.perGB(); s.raw >= enoughBytes && (puts-byAge > maxPerGB || gets-byAge-looks > maxPerGB) {
		return fmt.Errorf("%.0f PUT-like requests and %.0f GETs per settled GB, more than %d", puts, gets, maxPerGB)
	}
	_, err = s.objects(ctx, "after settle")
	return err
}

// auditUntilDry runs the auditor as an operator's script would, until no marker
// that waits for a grace stands. Burned keys keep their last look for a day; that is no debt.
func (s *story) auditUntilDry(ctx context.Context) error {
	requests := map[string]int64{}
	byDuty := map[string]map[string]int64{}
	for range maxAudits {
		var sum struct {
			Requests map[string]int64
			Duties   map[string]struct{ Requests map[string]int64 }
		}
		if err := s.bin.json(ctx, &sum, []int{0}, "auditor", append([]string{"--once"}, graces...)...); err != nil {
			return err
		}
		addUp(requests, sum.Requests)
		for duty, d := range sum.Duties {
			if byDuty[duty] == nil {
				byDuty[duty] = map[string]int64{}
			}
			addUp(byDuty[duty], d.Requests)
		}
		st, err := s.status(ctx)
		if err != nil {
			return err
		}
		if st.dry() {
			addUp(s.requests, requests)
			puts, gets := s.perGB()
			fmt.Fprintf(s.out, "           the auditor's requests %v, by duty %v\n", requests, byDuty)
			fmt.Fprintf(s.out, "           up and auditor so far, per GB of rows: %.0f PUT-like, %.0f GET\n", puts, gets)
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("still not dry after %d runs of the auditor", maxAudits)
}

const maxAudits = 60

// addUp sums counters, leaving zeros out.
func addUp(sum, more map[string]int64) {
	for op, n := range more {
		if n > 0 {
			sum[op] += n
		}
	}
}

func (st *status) dry() bool {
	for _, duty := range []catalog.Duty{
		catalog.DutySettle, catalog.DutyTrimCheck, catalog.DutyReapCheck, catalog.DutyTeardown, catalog.DutyReclaim,
	} {
		if st.Markers[string(duty)].Standing > 0 {
			return false
		}
	}
	return st.Intents["standing"] == 0 && st.Intents["condemned"] == 0
}

// perGB is what was asked of the bucket so far, per GB of rows.
func (s *story) perGB() (puts, gets float64) {
	gb := float64(s.raw) / 1e9
	r := s.requests
	puts = float64(r["put"]+r["create-upload"]+r["upload-part"]+r["copy-part"]+r["complete"]) / gb
	return puts, float64(r["get"]) / gb
}
