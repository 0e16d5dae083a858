//go:build unix

package pgha

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"
)

// Enough rows to say that load ran, and that it runs again.
const (
	rowsBefore = 1000
	rowsAfter  = 1000
	clients    = 4
)

// writerFlags publish often, so that the fail-over meets absorbs under way.
var writerFlags = []string{"writer", "--http", "127.0.0.1:0", "--shared-window", "20ms", "--segment-age", "1s", "--log-level", "info"}

// auditorFlags settle at once, with graces that pass within the test.
var auditorFlags = []string{
	"auditor", "--auditor-read-grace", "1s", "--auditor-orphan-grace", "5s", "--settle-age", "0s", "--auditor-lease", "3s", "--settle-lease", "4s", "--log-level", "info",
}

// TestFailOver kills the primary under load and promotes its synchronous standby: nothing
// that was acknowledged is lost, and nobody is restarted.
func TestFailOver(t *testing.T) {
	s := newSite(t, true)
	w := s.start("writer", true, append(writerFlags, "--dir", s.dir+"/w")...)
	a := s.start("auditor", false, auditorFlags...)
	r := s.start("reader", true, "reader", "--http", "127.0.0.1:0")
	l := newLoad(t, w.url, "row", clients)
	s.until(startWithin, "rows before the kill", func() bool { return l.acked() >= rowsBefore })

	if err := s.primary.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	s.standby.Promote(t)
	promoted := time.Now()
	before := l.acked()
	s.until(startWithin, "rows after the fail-over", func() bool { return l.acked() >= before+rowsAfter })
	t.Logf("promoted %v after the kill, %d rows more %v after that; %d rows acknowledged before, %d requests failed", promoted.Sub(killed).Round(time.Millisecond),
		rowsAfter, time.Since(promoted).Round(time.Millisecond), before, l.failed())
	l.stop()

	// What was absorbed after the fail-over is settled, and the reader has it: both went on.
	s.until(startWithin, "the auditor settles what came after", func() bool { return s.settled() })
	for _, c := range l.clients {
		s.until(startWithin, "the reader serves "+c.stream, func() bool { return r.serves(c.stream) })
		c.holds(t, r.get(c.stream))
	}
	for _, p := range []*process{w, a, r} {
		if p.ended() {
			t.Errorf("%s ended by itself: exit %d", p.name, p.cmd.ProcessState.ExitCode())
		} else if code := p.stop(t); code != 0 {
			t.Errorf("%s stops with %d", p.name, code)
		}
	}
	for _, c := range l.clients {
		out, said, code := s.run("cat", c.stream, "--ndjson")
		if code != 0 {
			t.Fatalf("cat %s: exit %d: %s", c.stream, code, said)
		}
		c.holds(t, out)
	}
	// Two graces on, nothing is owed: what died under both servers is gone, and nothing else.
	if out, said, code := s.run("auditor", "--once", "--linger", "5s", "--settle-age", "0s"); code != 0 {
		t.Errorf("auditor --once: exit %d\n%s%s", code, out, last(said, 3000))
	}
	if out, said, code := s.run("fsck"); code != 0 {
		t.Errorf("fsck: exit %d\n%s%s", code, last(out, 3000), said)
	}
}

// status is what is looked at of `status --json`.
type status struct {
	Refs    map[string]int64
	Markers map[string]struct {
		Standing  int64
		LastError string `json:"last_error"`
	}
	Alarms []struct{ Kind, Subject, Detail string }
}

// status is empty while the catalog is away.
func (s *site) status() (st status, ok bool) {
	s.t.Helper()
	out, _, code := s.run("status", "--json")
	if code != 0 {
		return st, false
	}
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		s.t.Fatal(err)
	}
	return st, true
}

// settled: refs stand, and none of them names a slot.
func (s *site) settled() bool {
	st, ok := s.status()
	total := int64(0)
	for _, n := range st.Refs {
		total += n
	}
	return ok && total > 0 && st.Refs["slot"] == 0 && st.Markers["settle"].Standing == 0
}

// get is a GET of a stream's rows; empty unless it was answered in full.
func (p *process) get(stream string) string {
	resp, err := http.Get(p.url + "/v1/streams/" + stream + "/rows?limit=100000")
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

func (p *process) serves(stream string) bool { return p.get(stream) != "" }
