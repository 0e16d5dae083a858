//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// finding is one vulnerability: the deepest level at which the code has to do with it.
type finding struct {
	id, module, version, fixed string
	called                     string // where; empty: not called
}

// message is one of govulncheck's stream.
type message struct {
	Config  *struct{}
	Finding *reported
}

// reported is a vulnerability at one level: required, imported, called. The trace begins
// in the vulnerable module and ends in our code.
type reported struct {
	OSV          string
	FixedVersion string `json:"fixed_version"`
	Trace        []struct {
		Module, Version, Package, Function string
		Position                           *struct {
			Filename string
			Line     int
		}
	}
}

// parseFindings reads govulncheck's stream. It names a vulnerability once for each level;
// the first call that it found is kept.
func parseFindings(r io.Reader) ([]finding, error) {
	byID := map[string]finding{}
	started := false
	for d := json.NewDecoder(r); ; {
		var m message
		err := d.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("govulncheck's answer: %w", err)
		}
		started = started || m.Config != nil
		if f := m.Finding; f != nil && len(f.Trace) > 0 && byID[f.OSV].called == "" {
			byID[f.OSV] = f.finding()
		}
	}
	if !started {
		return nil, errors.New("govulncheck said nothing")
	}
	var out []finding
	for _, f := range byID {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b finding) int { return strings.Compare(a.id, b.id) })
	return out, nil
}

func (f *reported) finding() finding {
	at := f.Trace[0]
	one := finding{id: f.OSV, module: at.Module, version: at.Version, fixed: f.FixedVersion}
	if at.Function != "" {
		one.called = at.Package + "." + at.Function
		if ours := f.Trace[len(f.Trace)-1]; ours.Position != nil {
			one.called += fmt.Sprintf(" from %s:%d", ours.Position.Filename, ours.Position.Line)
		}
	}
	return one
}

// accepted is a finding that is let pass for a while.
type accepted struct {
	until  time.Time
	reason string
}

// parseAccepted reads lines: ID, the day from which it fails again, and why.
func parseAccepted(text []byte) (map[string]accepted, error) {
	out := map[string]accepted{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.SplitN(line, " ", 3)
		if len(words) < 3 {
			return nil, fmt.Errorf("line %d: write ID YYYY-MM-DD REASON", n)
		}
		until, err := time.Parse(time.DateOnly, words[1])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out[words[0]] = accepted{until, words[2]}
	}
	return out, nil
}

// verdict is what is printed, and whether it is a failure.
type verdict struct {
	text   string
	failed bool
}

// judge fails on what is called and not accepted.
func judge(found []finding, known map[string]accepted, now time.Time) verdict {
	var v verdict
	say := func(format string, args ...any) { v.text += fmt.Sprintf(format, args...) }
	met := map[string]bool{}
	called, let := 0, 0
	for _, f := range found {
		met[f.id] = true
		fix := "no fix yet"
		if f.fixed != "" {
			fix = "fixed in " + f.fixed
		}
		a, isKnown := known[f.id]
		switch {
		case f.called == "":
			say("  %s  %s %s (%s): required, not called\n", f.id, f.module, f.version, fix)
		case isKnown && now.Before(a.until):
			let++
			say("  %s  %s %s (%s): accepted until %s: %s\n", f.id, f.module, f.version, fix, a.until.Format(time.DateOnly), a.reason)
		default:
			called++
			say("  %s  %s %s (%s): CALLED: %s\n", f.id, f.module, f.version, fix, f.called)
		}
	}
	for id := range known {
		if !met[id] { // mended, or the database is an older one than it was accepted by
			say("  %s  is accepted and not found: take its line away if the database is as new as before\n", id)
		}
	}
	say("  %d found, %d of them called and not accepted, %d accepted\n", len(found), called, let)
	v.failed = called > 0
	return v
}
