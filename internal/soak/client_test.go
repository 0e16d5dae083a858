package soak

import "testing"

// TestFullDiskPasses: a writer without room wrote nothing, and takes rows again later; what is
// damage is none of that.
func TestFullDiskPasses(t *testing.T) {
	for _, c := range []struct {
		p                problem
		passing, nothing bool
	}{
		{problem{Status: 507, Code: "disk-full"}, true, true},
		{problem{Status: 503, Code: "backpressure"}, true, true},
		{problem{Status: 503, Code: "timeout"}, true, false},
		{problem{Status: 500, Code: "lost"}, false, false},
	} {
		if c.p.passing() != c.passing || c.p.wroteNothing() != c.nothing {
			t.Errorf("%v: passing %t, wrote nothing %t", &c.p, c.p.passing(), c.p.wroteNothing())
		}
	}
}
