package memory

import (
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
)

// A holder that was killed gives no lease back: its row goes when it is over, with the
// next look at the auditors; one that is held stays.
func TestLeasesOfTheKilledAreForgotten(t *testing.T) {
	ctx, now := t.Context(), time.Unix(1_000_000, 0)
	c := New(Options{Clock: func() time.Time { return now }})
	for id, lease := range map[string]time.Duration{"00000001.00000000": time.Minute, "00000001.00000001": time.Hour} {
		if err := c.LeaseDuty(ctx, catalog.Holder{Duty: catalog.DutySettle, ID: id, Owner: "a"}, lease); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(time.Minute)
	if _, err := c.RegisterAuditor(ctx, "b", time.Minute); err != nil {
		t.Fatal(err)
	}
	if n := c.t.lease.n; n != 1 {
		t.Fatalf("%d leases stand, want the one that is held", n)
	}
}
