package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/pgserver"
	"github.com/strandline/strandline/segment"
)

func run(t *testing.T, dsn, statement string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestOpenAtOnce: many processes may start on an empty database.
func TestOpenAtOnce(t *testing.T) {
	dsn := pgserver.NewDatabase(t)
	var g errgroup.Group
	for range 6 {
		g.Go(func() error {
			d, err := Open(t.Context(), Options{DSN: dsn, MaxConns: 2})
			if err != nil {
				return err
			}
			_, err = d.Topologies(t.Context())
			return errors.Join(err, d.Close())
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// TestSchemas: two catalogs live side by side in one database.
func TestSchemas(t *testing.T) {
	dsn := pgserver.NewDatabase(t)
	one, two := openWith(t, Options{DSN: dsn, Schema: "one"}), openWith(t, Options{DSN: dsn, Schema: "two"})
	if _, err := one.Init(t.Context(), uuidOf(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Settings(t.Context()); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("the other schema's settings: %v", err)
	}
	for _, name := range []string{"One", "a-b", `a"; DROP TABLE x`, strings.Repeat("a", 64)} {
		if _, err := Open(t.Context(), Options{DSN: dsn, Schema: name}); !errors.Is(err, catalog.ErrInvalid) {
			t.Errorf("schema %q: %v", name, err)
		}
	}
}

// TestNotDurable: a server that acknowledges what a crash loses is refused.
func TestNotDurable(t *testing.T) {
	dsn := pgserver.NewDatabase(t)
	openWith(t, Options{DSN: dsn})
	for _, mode := range []string{"off", "local", "remote_write"} {
		_, err := Open(t.Context(), Options{DSN: dsn + "&synchronous_commit=" + mode})
		if !errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), "ALTER SYSTEM") {
			t.Errorf("synchronous_commit = %s: %v", mode, err)
		}
	}
	openWith(t, Options{DSN: dsn + "&synchronous_commit=remote_apply"})
}

// TestDurabilityIsKept: a server that is told to acknowledge what a crash loses does not do
// so on connections that stand, and new ones are refused until it is told otherwise.
func TestDurabilityIsKept(t *testing.T) {
	s := pgserver.Start(t, pgserver.Options{})
	dsn := s.NewDatabase(t)
	d := openWith(t, Options{DSN: dsn, MaxConns: 1})
	commits := func() (mode string) {
		t.Helper()
		c, err := d.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
		if err := c.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&mode); err != nil {
			t.Fatal(err)
		}
		return mode
	}
	reload := func(statement, want string) {
		t.Helper()
		run(t, dsn, statement)
		run(t, dsn, "SELECT pg_reload_conf()")
		for shown := ""; shown != want; { // the postmaster has to hear of it first
			c, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			err = c.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&shown)
			if err := errors.Join(err, c.Close(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
	}
	reload("ALTER SYSTEM SET synchronous_commit = off", "off")
	// A backend looks at its signals between two commands.
	for range 3 {
		if got := commits(); got != "on" {
			t.Errorf("a connection that stands has synchronous_commit = %s", got)
		}
		time.Sleep(50 * time.Millisecond)
	}
	d.pool.Reset()
	if _, err := d.Now(t.Context()); !errors.Is(err, catalog.ErrUnavailable) || errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), "ALTER SYSTEM") {
		t.Errorf("a new connection: %v", err)
	}
	reload("ALTER SYSTEM RESET synchronous_commit", "on")
	if _, err := d.Now(t.Context()); err != nil {
		t.Errorf("it is on again: %v", err)
	}
}

// TestTakesNoWrites: a server that answers and takes no writes is not said to be away.
func TestTakesNoWrites(t *testing.T) {
	dsn := pgserver.NewDatabase(t)
	d := openWith(t, Options{DSN: dsn})
	d.goneFor = 100 * time.Millisecond
	run(t, dsn, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$")
	d.pool.Reset()
	if _, err := d.Now(t.Context()); !errors.Is(err, catalog.ErrUnavailable) || !strings.Contains(err.Error(), "takes writes") {
		t.Error(err)
	}
}

// TestNewerSchema: what a newer build wrote is refused, and left alone.
func TestNewerSchema(t *testing.T) {
	dsn := pgserver.NewDatabase(t)
	openWith(t, Options{DSN: dsn})
	run(t, dsn, "INSERT INTO strandline.goose_db_version (version_id, is_applied) VALUES (99, true)")
	for _, opt := range []Options{{}, {MustExist: true}, {ReadOnly: true}} {
		opt.DSN = dsn
		if _, err := Open(t.Context(), opt); !errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), "run that version or a newer one") {
			t.Errorf("%+v: %v", opt, err)
		}
	}
}

// TestMigrations goes up one by one, with rows that stand: those of the version before
// stay, and the verbs run on the last. The second migration is the test's own.
func TestMigrations(t *testing.T) {
	dsn := pgserver.NewDatabase(t)
	d := openWith(t, Options{DSN: dsn})
	prepareChain(t, d)
	if _, err := d.AbsorbSlot(t.Context(), slotOf(testChain, 1, 3)); err != nil {
		t.Fatal(err)
	}
	opt := withDefaults(Options{DSN: dsn})
	config, err := poolConfig(&opt)
	if err != nil {
		t.Fatal(err)
	}
	next := fstest.MapFS{}
	first, err := embedded.ReadFile("migrations/00001_catalog.sql")
	if err != nil {
		t.Fatal(err)
	}
	next["00001_catalog.sql"] = &fstest.MapFile{Data: first}
	// One that fails half-way leaves the version that stood.
	next["00002_test.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nALTER TABLE ref ADD COLUMN extra bigint NOT NULL DEFAULT 7;\nSELECT 1 / 0;\n")}
	if err := migrate(t.Context(), config.ConnConfig, opt.Schema, next); err == nil {
		t.Fatal("migrated over a division by zero")
	}
	if err := migrate(t.Context(), config.ConnConfig, opt.Schema, migrations); err != nil {
		t.Fatalf("the version that stood: %v", err)
	}
	next["00002_test.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nALTER TABLE stream ADD COLUMN extra bigint NOT NULL DEFAULT 7;\n")}
	for range 2 { // once migrated, it is left alone
		if err := migrate(t.Context(), config.ConnConfig, opt.Schema, next); err != nil {
			t.Fatal(err)
		}
	}
	// This build does not know what the rows mean now; they stand.
	if _, err := d.AbsorbSlot(t.Context(), slotOf(testChain, 2, 3)); !errors.Is(err, catalog.ErrNewer) {
		t.Errorf("after a migration: %v", err)
	}
	var refs int
	if err := d.pool.QueryRow(t.Context(), "SELECT count(*) FROM ref").Scan(&refs); err != nil || refs != 3 {
		t.Errorf("%d refs, %v", refs, err)
	}
	if _, err := Open(t.Context(), Options{DSN: dsn}); !errors.Is(err, catalog.ErrInvalid) {
		t.Errorf("this build, on the next one's schema: %v", err)
	}
}

// TestEpochs: an epoch that no column holds is refused, and one asked for is not found.
func TestEpochs(t *testing.T) {
	d := openWith(t, Options{})
	const far = segment.Epoch(1<<32 - 1)
	if _, err := d.Chain(t.Context(), segment.Chain{Epoch: far}); !errors.Is(err, catalog.ErrNotFound) {
		t.Error(err)
	}
	_, err := d.EnsureTopology(t.Context(), catalog.Topology{Epoch: far, Shards: 1, Class: "c", Buckets: []string{"b"}, State: catalog.TopologyOpen})
	if !errors.Is(err, catalog.ErrInvalid) {
		t.Error(err)
	}
}

// TestNames: a stream's name may be any valid UTF-8, and the order is that of the bytes.
func TestNames(t *testing.T) {
	d := openWith(t, Options{})
	prepareChain(t, d)
	a := slotOf(testChain, 1, 4)
	names := []string{"A\x00b", "B", "a", "é\U0010FFFF"}
	for i := range a.Refs {
		a.Refs[i].Stream = names[i]
	}
	if _, err := d.AbsorbSlot(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	streams, err := d.Streams(t.Context(), "", 0)
	if err != nil || len(streams) != len(names) {
		t.Fatalf("%+v, %v", streams, err)
	}
	for i, s := range streams {
		if p, err := d.Plan(t.Context(), catalog.PlanRequest{Stream: names[i]}); s.Name != names[i] || err != nil || len(p.Refs) != 1 || p.Refs[0].Stream != names[i] {
			t.Errorf("%q: %+v %+v, %v", names[i], s, p.Refs, err)
		}
	}
	if err := d.Audit(t.Context(), "kind", "a\x00b", "\xff"); err != nil {
		t.Error(err)
	}
}

// TestRestart: a server that goes away is ErrUnavailable, never a guess; when it is back
// within the wait, a verb that was under way is run again.
func TestRestart(t *testing.T) {
	s := pgserver.Start(t, pgserver.Options{})
	d := openWith(t, Options{DSN: s.NewDatabase(t)})
	prepareChain(t, d)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	d.goneFor = 100 * time.Millisecond
	if _, err := d.AbsorbSlot(t.Context(), slotOf(testChain, 1, 3)); !errors.Is(err, catalog.ErrUnavailable) {
		t.Errorf("no server: %v", err)
	}
	d.goneFor = time.Minute
	done := make(chan error, 1)
	go func() {
		_, err := d.AbsorbSlot(t.Context(), slotOf(testChain, 1, 3))
		done <- err
	}()
	if err := s.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the server is back: %v", err)
	}
}

// TestUnreplicated: a commit that did not wait for its synchronous standby is no success,
// and the call after it waits for the standby though it has nothing left to do.
func TestUnreplicated(t *testing.T) {
	s := pgserver.Start(t, pgserver.Options{})
	dsn := s.NewDatabase(t)
	d := openWith(t, Options{DSN: dsn})
	prepareChain(t, d)
	run(t, dsn, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	run(t, dsn, "SELECT pg_reload_conf()")
	absorb := func() chan error {
		done := make(chan error, 1)
		go func() {
			_, err := d.AbsorbSlot(context.Background(), slotOf(testChain, 1, 3))
			done <- err
		}()
		return done
	}
	first := absorb()
	awaitSyncRep(t, dsn)
	run(t, dsn, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	if err := <-first; !errors.Is(err, catalog.ErrAmbiguous) || !strings.Contains(err.Error(), "replication") {
		t.Errorf("a commit without its standby: %v", err)
	}
	again := absorb()
	awaitSyncRep(t, dsn)
	run(t, dsn, "ALTER SYSTEM RESET synchronous_standby_names")
	run(t, dsn, "SELECT pg_reload_conf()")
	if err := <-again; err != nil {
		t.Errorf("with nobody to wait for: %v", err)
	}
}

// awaitSyncRep waits until a COMMIT waits for its standby.
func awaitSyncRep(t *testing.T, dsn string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		var n int
		if err := c.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&n); err != nil || n > 0 {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no commit waits for the standby")
		}
	}
}
