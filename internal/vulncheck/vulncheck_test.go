//go:build unix

package main

import (
	"strings"
	"testing"
	"time"
)

// answer is what govulncheck says: one that is called, after the levels above it; one that
// is imported; one that is only required.
const answer = `{"config":{"scanner_name":"govulncheck"}}
{"osv":{"id":"GO-1"}}
{"finding":{"osv":"GO-1","fixed_version":"v1.26.9","trace":[{"module":"stdlib","version":"v1.26.8"}]}}
{"finding":{"osv":"GO-1","fixed_version":"v1.26.9","trace":[{"module":"stdlib","version":"v1.26.8","package":"net/http"}]}}
{"finding":{"osv":"GO-1","fixed_version":"v1.26.9","trace":[{"module":"stdlib","version":"v1.26.8","package":"net/http","function":"Do"},{"module":"ours","position":{"filename":"a.go","line":7}}]}}
{"finding":{"osv":"GO-1","trace":[{"module":"stdlib","package":"net/http"}]}}
{"finding":{"osv":"GO-2","trace":[{"module":"m","version":"v1.0.0","package":"m/p"}]}}
{"finding":{"osv":"GO-3","trace":[{"module":"n","version":"v1.0.0"}]}}
`

func TestFindings(t *testing.T) {
	found, err := parseFindings(strings.NewReader(answer))
	if err != nil {
		t.Fatal(err)
	}
	want := []finding{
		{"GO-1", "stdlib", "v1.26.8", "v1.26.9", "net/http.Do from a.go:7"},
		{"GO-2", "m", "v1.0.0", "", ""},
		{"GO-3", "n", "v1.0.0", "", ""},
	}
	if len(found) != len(want) {
		t.Fatalf("%+v", found)
	}
	for i := range want {
		if found[i] != want[i] {
			t.Errorf("%+v, want %+v", found[i], want[i])
		}
	}
	for _, bad := range []string{"", answer[:len(answer)-10], `{"progress":{}}`} {
		if _, err := parseFindings(strings.NewReader(bad)); err == nil {
			t.Errorf("an answer that is cut is taken: %q", bad)
		}
	}
}

func TestJudge(t *testing.T) {
	found, err := parseFindings(strings.NewReader(answer))
	if err != nil {
		t.Fatal(err)
	}
	day := func(text string) time.Time {
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, c := range []struct {
		accepted, now string
		failed        bool
		say           string
	}{
		{"", "2026-11-30", true, "CALLED: net/http.Do"},
		{"GO-2 2027-01-01 x", "2026-11-30", true, "CALLED"},
		{"# why\n\nGO-1 2027-01-01 the new Go is awaited", "2026-12-31", false, "the new Go is awaited"},
		{"GO-1 2027-01-01 x", "2027-01-01", true, "CALLED"},
		{"GO-1 2027-01-01 x\nGO-9 2027-01-01 x", "2026-11-30", false, "GO-9  is accepted and not found"},
	} {
		known, err := parseAccepted([]byte(c.accepted))
		if err != nil {
			t.Fatal(err)
		}
		v := judge(found, known, day(c.now))
		if v.failed != c.failed || !strings.Contains(v.text, c.say) {
			t.Errorf("%q on %s: failed %v:\n%s", c.accepted, c.now, v.failed, v.text)
		}
	}
	for _, bad := range []string{"GO-1", "GO-1 2027-01-01", "GO-1 soon because"} {
		if _, err := parseAccepted([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestAge(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	if got := age("v0.0.0-20261105234957-e22db6528018", now); got != "of 2026-11-05, 24 days old" {
		t.Error(got)
	}
	if got := age("v1.2.3", now); got != "of unknown age" {
		t.Error(got)
	}
}
