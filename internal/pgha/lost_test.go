//go:build unix

package pgha

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lostGrace is the read grace of TestLostCommits. What is lost is less (03 §0 assumes it).
const lostGrace = 4 * time.Second

// TestLostCommits promotes a standby that missed what the primary had committed: rows that
// were acknowledged, and what the heads in the bucket tell of. Whoever writes stops, and
// nothing is deleted any more, not even what was due before.
func TestLostCommits(t *testing.T) {
	s := newSite(t, false)
	w := s.start("writer", true, append(writerFlags, "--dir", s.dir+"/w")...)
	a := s.start("auditor", false, append(auditorFlags, "--auditor-read-grace", lostGrace.String())...)
	l := newLoad(t, w.url, "row", clients)
	s.until(startWithin, "rows are acknowledged", func() bool { return l.acked() >= rowsBefore })
	s.until(startWithin, "a chain's head is in the bucket", func() bool { return len(s.heads()) > 0 })
	s.reaping() // merged packs die all the time under this load, and go two graces later

	before := l.ledgers()
	s.loseCommits(l)
	s.standby.Promote(t)
	promoted, stood := time.Now(), s.objects("")
	if st, ok := s.status(); !ok || st.Markers["reap-check"].Standing == 0 {
		t.Fatalf("nothing is about to be deleted, so that nothing is proven: %+v", st)
	}
	s.until(startWithin, "the auditor's deleting duty says that the catalog was rolled back", func() bool { return a.holds() })
	noticed := time.Since(promoted)
	s.until(startWithin, "the writer says so", func() bool { return strings.Contains(w.log.String(), "rolled back") })
	l.stop()

	s.pass(lostGrace / 2) // a pass that began before ends
	stands := s.objects("")
	t.Logf("noticed %v after the promotion; %d objects stood then, %d when passes had ended", noticed.Round(time.Millisecond), len(stood), len(stands))
	s.pass(3 * lostGrace)
	for key := range stands {
		if _, err := os.Stat(filepath.Join(s.bucket(), key)); err != nil {
			t.Errorf("deleted under a catalog that lost commits: %s", key)
		}
	}
	for _, c := range before { // whatever went, no row that this catalog knows
		out, said, code := s.run("cat", c.stream, "--ndjson")
		if code != 0 {
			t.Fatalf("cat %s: exit %d: %s", c.stream, code, said)
		}
		c.holds(t, out)
	}
	out, said, code := s.run("fsck")
	if code == 0 || !strings.Contains(out+said, "rolled back") {
		t.Errorf("fsck has a verdict on such a catalog: exit %d\n%s%s", code, out, said)
	}
	if out, said, _ = s.run("status"); !strings.Contains(out, "rolled back") || !strings.Contains(out, "rolled-back") { // what waits, and the alarm
		t.Errorf("status does not tell of it:\n%s%s", out, said)
	}
}

// loseCommits stops the standby, has the primary commit what heads in the bucket tell of,
// and kills it.
func (s *site) loseCommits(l *load) {
	s.t.Helper()
	s.standby.CaughtUp(s.t)
	if err := s.standby.Stop(); err != nil {
		s.t.Fatal(err)
	}
	began, heads, acked := time.Now(), s.heads(), l.acked()
	s.until(lostGrace*3/2, "rows and a head that the standby does not have", func() bool {
		return l.acked() > acked+20 && !maps.Equal(heads, s.heads())
	})
	if err := s.primary.Kill(); err != nil {
		s.t.Fatal(err)
	}
	lost := time.Since(began)
	s.t.Logf("%v of commits are lost, %d rows among them", lost.Round(time.Millisecond), l.acked()-acked)
	if err := s.standby.Restart(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// reaping waits until an object goes that stood before.
func (s *site) reaping() {
	s.t.Helper()
	packs := s.objects("pack/")
	s.until(startWithin, "dead objects are reaped", func() bool {
		now := s.objects("pack/")
		for key := range packs {
			if !now[key] {
				return true
			}
		}
		packs = now
		return false
	})
}

// holds: a deleting duty met the rolled-back catalog.
func (p *process) holds() bool {
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, `"reap-check"`) && strings.Contains(line, "rolled back") {
			return true
		}
	}
	return false
}

// pass waits: real processes run by the real clock, and their graces have to pass.
func (s *site) pass(d time.Duration) {
	s.t.Helper()
	select {
	case <-time.After(d):
	case <-s.t.Context().Done():
		s.t.Fatal("the test was ended")
	}
}

// heads are the chains' heads by what is in them.
func (s *site) heads() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for key := range s.objects("rw/") {
		text, err := os.ReadFile(filepath.Join(s.bucket(), key))
		if err == nil {
			out[key] = string(text)
		}
	}
	return out
}
