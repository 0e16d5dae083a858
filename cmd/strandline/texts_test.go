package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/check"
)

// TestLogDurations: a duration in a JSON log is read by people, and by whoever reads flags.
func TestLogDurations(t *testing.T) {
	var errs bytes.Buffer
	a := &app{streams: streams{err: &errs}, logLevel: "info"}
	log, err := a.logger()
	if err != nil {
		t.Fatal(err)
	}
	log.With("every", time.Minute).WithGroup("g").Info("x", "took", 1500*time.Millisecond, "n", 7)
	var got struct {
		Every string
		G     struct {
			Took string
			N    int
		}
	}
	if err := json.Unmarshal(errs.Bytes(), &got); err != nil || got.Every != "1m0s" || got.G.Took != "1.5s" || got.G.N != 7 {
		t.Errorf("%v: %s", err, &errs)
	}
}

// TestLookLines: what every look at a bucket met is said once, and how often.
func TestLookLines(t *testing.T) {
	gone, bad := check.LossLook{Bucket: "one", Why: "gone"}, check.LossLook{Bucket: "two", Why: "bad"}
	got := lookLines([]check.LossLook{gone, bad, gone, {Bucket: "two", Why: "worse"}})
	want := []string{"looked at one 2 times, each time: gone", "looked at two: bad", "looked at two: worse"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestDutyLines: the columns of what is due say what they count: markers whose time has come,
// and when the first one's comes or came.
func TestDutyLines(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{90 * time.Second: "in 1m30s", 300 * time.Millisecond: "now", -3 * time.Second: "since 3s"} {
		at := now.Add(d)
		lines := dutyLines(&statusOut{Time: now, Markers: map[string]markersOut{"settle": {Standing: 2, Due: 1, Oldest: &at}}})
		if head := strings.Join(lines[0], "|"); head != "DUTY|STANDING|DUE NOW|FIRST DUE|ATTEMPTS|LAST ERROR" || lines[1][3] != want {
			t.Errorf("%s: %q, want %q", head, lines[1], want)
		}
	}
}
