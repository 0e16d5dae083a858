package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
)

// A holder that was killed gives no lease back: its row goes when it is over, with the
// next look at the auditors; one that is held stays.
func TestLeasesOfTheKilledAreForgotten(t *testing.T) {
	ctx, now := context.Background(), time.Unix(1_000_000, 0)
	d := openWith(t, Options{Clock: func() time.Time { return now }})
	for id, lease := range map[string]time.Duration{"00000001.00000000": time.Minute, "00000001.00000001": time.Hour} {
		if err := d.LeaseDuty(ctx, catalog.Holder{Duty: catalog.DutySettle, ID: id, Owner: "a"}, lease); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(time.Minute)
	if _, err := d.RegisterAuditor(ctx, "b", time.Minute); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := d.read(ctx, "count", func(t *tx) error {
		_, err := t.one("SELECT count(*) FROM lease", nil, &n)
		return err
	}); err != nil || n != 1 {
		t.Fatalf("%d leases stand, %v; want the one that is held", n, err)
	}
}
