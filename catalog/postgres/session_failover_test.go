package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/postgres"
	"github.com/strandline/strandline/internal/pgserver"
)

// TestSessionEndsWithItsServer: what is bound to the session of a primary is not made at the
// standby that is promoted in its place, though the verb is run again there, nor behind a
// restart.
func TestSessionEndsWithItsServer(t *testing.T) {
	ctx := context.Background()
	primary := pgserver.Start(t, pgserver.Options{})
	standby := primary.Standby(t, false)
	d, err := postgres.Open(ctx, postgres.Options{DSN: pgserver.DSN("postgres", primary, standby)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() }) // nothing is under way
	session := func() context.Context {
		t.Helper()
		s, err := d.Session(ctx)
		if err != nil || s == "" {
			t.Fatalf("session %q, %v", s, err)
		}
		return catalog.Within(ctx, s)
	}
	before := session()
	if err := d.Audit(before, "test", "in the session", ""); err != nil {
		t.Fatal(err)
	}
	standby.CaughtUp(t)
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	standby.Promote(t)
	over := func(what string, before context.Context) {
		t.Helper()
		if err := d.Audit(before, "test", "over", ""); !errors.Is(err, catalog.ErrSessionEnded) {
			t.Errorf("a write bound to the session before %s: %v", what, err)
		}
		if _, err := d.Now(before); !errors.Is(err, catalog.ErrSessionEnded) {
			t.Errorf("a read bound to the session before %s: %v", what, err)
		}
		if err := d.Audit(session(), "test", "in the session", ""); err != nil {
			t.Errorf("a write bound to the session behind %s: %v", what, err)
		}
	}
	over("the fail-over", before)
	promoted := session()
	if err := standby.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	over("a restart", promoted)
	rows, err := d.AuditRows(ctx, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, r := range rows {
		switch r.Subject {
		case "over":
			t.Errorf("a verb was made in another session than its own: %+v", r)
		case "in the session":
			made++
		}
	}
	if made != 3 {
		t.Errorf("%d verbs were made in their own sessions, not 3", made)
	}
}
