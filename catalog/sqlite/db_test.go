package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func isUnavailable(err error) bool { return errors.Is(err, catalog.ErrUnavailable) }
func isReadOnly(err error) bool    { return errors.Is(err, catalog.ErrReadOnly) }

// breakRow runs a statement behind the catalog's back.
func breakRow(t *testing.T, d *DB, q string, args ...any) {
	t.Helper()
	if err := d.write(context.Background(), "break", func(t *tx) error { return t.exec(q, args...) }); err != nil {
		t.Fatal(err)
	}
}

func absorbN(t testing.TB, d *DB, n, streams int) {
	t.Helper()
	for i := range n {
		if _, err := d.AbsorbSlot(context.Background(), slotOf(uint64(i+1), streams, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpen(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "catalog.db")
	for _, o := range []Options{{}, {Path: path, ReadOnly: true, Create: true}} {
		if _, err := Open(ctx, o); !errors.Is(err, catalog.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, o := range []Options{{Path: path}, {Path: path, ReadOnly: true}} {
		if _, err := Open(ctx, o); !errors.Is(err, catalog.ErrNotFound) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := os.WriteFile(path, []byte("this is no database, and longer than a header of a hundred bytes, which is what SQLite reads first of all"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, Options{Path: path}); !errors.Is(err, catalog.ErrCorrupt) {
		t.Errorf("garbage: %v", err)
	}
}

func TestSchemaFromTheFuture(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "catalog.db")
	d, err := Open(ctx, Options{Path: path, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	breakRow(t, d, fmt.Sprintf("PRAGMA user_version = %d", schemaVersion+1))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, ro := range []bool{true, false} {
		if _, err := Open(ctx, Options{Path: path, ReadOnly: ro}); !errors.Is(err, catalog.ErrInvalid) {
			t.Errorf("read-only %v: %v", ro, err)
		}
	}
}

func TestClosed(t *testing.T) {
	d, err := Open(context.Background(), Options{Path: filepath.Join(t.TempDir(), "catalog.db"), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Audit(context.Background(), "x", "", ""); !isUnavailable(err) {
		t.Errorf("write: %v", err)
	}
	if _, err := d.Chains(context.Background()); !isUnavailable(err) {
		t.Errorf("read: %v", err)
	}
}

func TestNetworkFileSystems(t *testing.T) {
	for magic, want := range map[int64]string{
		unix.NFS_SUPER_MAGIC: "NFS", unix.CIFS_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.FUSE_SUPER_MAGIC: "FUSE",
		unix.EXT4_SUPER_MAGIC: "", unix.XFS_SUPER_MAGIC: "", unix.TMPFS_MAGIC: "",
	} {
		if got := networkFS(magic); got != want {
			t.Errorf("%x: got %q, want %q", magic, got, want)
		}
	}
}

// TestGroupIsolation: of verbs that share a commit, one that fails takes only its
// own writes back.
func TestGroupIsolation(t *testing.T) {
	d := openAt(t, filepath.Join(t.TempDir(), "catalog.db"), nil)
	ctx := context.Background()
	entered, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // holds the committer, so that the others queue into one group
		if err := d.write(ctx, "hold", func(*tx) error { close(entered); <-release; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-entered
	for i := range 20 {
		wg.Go(func() {
			err := d.write(ctx, "verb", func(t *tx) error {
				if err := t.audit("row", fmt.Sprint(i), ""); err != nil {
					return err
				}
				if i%2 == 0 {
					return catalog.Conflict("verb", "odd", "odd", "even")
				}
				return nil
			})
			if (err == nil) != (i%2 == 1) {
				t.Errorf("verb %d: %v", i, err)
			}
		})
	}
	cancelled, cancel := context.WithCancel(ctx)
	withdrawn := make(chan error, 1)
	go func() {
		withdrawn <- d.write(cancelled, "withdrawn", func(t *tx) error { return t.audit("withdrawn", "", "") })
	}()
	cancel()
	if err := <-withdrawn; !errors.Is(err, context.Canceled) {
		t.Errorf("withdrawn: %v", err)
	}
	close(release)
	wg.Wait()
	rows, err := d.AuditRows(ctx, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 10 {
		t.Errorf("%d rows, want the 10 of the verbs that did not fail", len(rows))
	}
	for _, r := range rows {
		if r.Kind != "row" {
			t.Errorf("row %+v of a verb that was withdrawn", r)
		}
	}
}

// TestNoSpace: a full disk is said, nothing happened, and the catalog goes on when
// there is room again.
func TestNoSpace(t *testing.T) {
	d := openAt(t, filepath.Join(t.TempDir(), "catalog.db"), nil)
	prepareChain(t, d)
	absorbN(t, d, 1, 10)
	breakRow(t, d, "PRAGMA max_page_count = 1") // as low as it goes: the pages that there are
	_, err := d.AbsorbSlot(context.Background(), slotOf(2, 10, 1))
	for n := uint64(2); err == nil; n++ {
		_, err = d.AbsorbSlot(context.Background(), slotOf(n+1, 10, 1))
	}
	if !errors.Is(err, catalog.ErrNoSpace) {
		t.Fatalf("want no space, got %v", err)
	}
	row, err := d.Chain(context.Background(), testChain)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if s.Refs[catalog.RefSlot] != 10*int64(row.AbsorbedEnd-1) {
		t.Fatalf("%d refs of %d slots", s.Refs[catalog.RefSlot], row.AbsorbedEnd-1)
	}
	breakRow(t, d, "PRAGMA max_page_count = 1000000")
	if _, err := d.AbsorbSlot(context.Background(), slotOf(uint64(row.AbsorbedEnd), 10, 1)); err != nil {
		t.Fatal(err)
	}
}

// TestHeal: after a commit in doubt nothing is written before the log was carried
// over.
func TestHeal(t *testing.T) {
	d := openAt(t, filepath.Join(t.TempDir(), "catalog.db"), nil)
	prepareChain(t, d)
	ctx := context.Background()
	breakRow(t, d, "SELECT 1") // the committer is idle behind this
	d.writer.sick = true
	reading, done := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := d.read(ctx, "hold", func(t *tx) error {
			if _, err := t.chain(testChain); err != nil {
				return err
			}
			close(reading)
			<-done
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	<-reading
	breakBusy := func() {
		if err := d.writer.c.pragma(ctx, "busy_timeout = 1"); err != nil {
			t.Error(err)
		}
	}
	breakBusy()
	if err := d.Audit(ctx, "x", "", ""); !isUnavailable(err) {
		t.Fatalf("a reader holds the log: %v", err)
	}
	close(done)
	wg.Wait()
	if err := d.Audit(ctx, "x", "", ""); err != nil {
		t.Fatal(err)
	}
}

// TestForeignWriter: a writer that is not ours (the sqlite3 tool) makes verbs wait,
// and then ErrUnavailable; nothing happened.
func TestForeignWriter(t *testing.T) {
	d := openAt(t, filepath.Join(t.TempDir(), "catalog.db"), nil)
	ctx := context.Background()
	breakRow(t, d, "SELECT 1")
	if err := d.writer.c.pragma(ctx, "busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	foreign, err := d.connect(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := foreign.close(); err != nil {
			t.Error(err)
		}
	}()
	other := &tx{ctx: ctx, c: foreign}
	if err := other.control("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if err := d.Audit(ctx, "x", "", ""); !isUnavailable(err) {
		t.Fatalf("want unavailable, got %v", err)
	}
	if err := other.control("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := d.Audit(ctx, "x", "", ""); err != nil {
		t.Fatal(err)
	}
}

// TestK16: a ref of a kind that this build does not know stops everything that
// deletes.
func TestK16(t *testing.T) {
	d := openAt(t, filepath.Join(t.TempDir(), "catalog.db"), nil)
	prepareChain(t, d)
	absorbN(t, d, 2, 3)
	ctx := context.Background()
	breakRow(t, d, "UPDATE object SET kind = 'newer' WHERE id = (SELECT MAX(id) FROM object)")
	_, live := d.Liveness(ctx, segment.SlotKey(testChain, 1))
	_, due := d.DueSlots(ctx, testChain, 10)
	_, walk := d.WalkStream(ctx, 1, 10)
	_, retire := d.RetireRefs(ctx, []catalog.Ref{{StreamID: 1}})
	_, trim := d.AdvanceTrim(ctx, testChain, 1, 2)
	_, _, judge := d.CondemnIntent(ctx, catalog.MarkerRef{Duty: catalog.DutyOrphan, ID: "k"})
	_, remove := d.RemoveIntent(ctx, "k")
	for name, err := range map[string]error{
		"Liveness": live, "DueSlots": due, "WalkStream": walk, "RetireRefs": retire, "AdvanceTrim": trim,
		"CondemnKey":    d.CondemnKey(ctx, catalog.MarkerRef{Duty: catalog.DutyReapCheck, ID: "k"}),
		"CondemnIntent": judge, "RemoveIntent": remove,
	} {
		if !errors.Is(err, catalog.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.Plan(ctx, catalog.PlanRequest{Stream: "stream-0000001"}); err != nil {
		t.Errorf("reading goes on: %v", err)
	}
}

// TestDanglingRow: a ref without its object, stream or chain is never "no ref".
func TestDanglingRow(t *testing.T) {
	for _, q := range []string{"DELETE FROM object", "DELETE FROM stream", "DELETE FROM chain"} {
		d := openAt(t, filepath.Join(t.TempDir(), "catalog.db"), nil)
		prepareChain(t, d)
		absorbN(t, d, 1, 3)
		breakRow(t, d, q)
		if _, err := d.ChainRefs(context.Background(), testChain, 0, 10); !errors.Is(err, catalog.ErrCorrupt) {
			t.Errorf("%s: %v", q, err)
		}
	}
}

// TestWatermark: what lies at or below the chain's watermark is dead in every verb.
func TestWatermark(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := openAt(t, filepath.Join(t.TempDir(), "catalog.db"), func() time.Time { return now })
	prepareChain(t, d)
	ctx := context.Background()
	absorbN(t, d, 3, 3) // slots of rows 1-3, 4-6, 7-9
	breakRow(t, d, "UPDATE chain SET watermark_seq = 6, watermark_segment = 2")
	p, err := d.Plan(ctx, catalog.PlanRequest{Stream: "stream-0000001"})
	if err != nil || len(p.Refs) != 1 || p.LiveFrom != (segment.Pos{Epoch: 1, Seq: 7}) {
		t.Fatalf("plan %+v %v", p, err)
	}
	w, err := d.Window(ctx, testChain, 1<<30)
	if err != nil || len(w.Slots) != 3 || len(w.Refs) != 3 {
		t.Fatalf("window of %d slots, %d refs, %v", len(w.Slots), len(w.Refs), err)
	}
	l, err := d.Liveness(ctx, segment.SlotKey(testChain, 1))
	if err != nil || len(l) != 3 || !l[0].Dead(l[0].LiveFrom) {
		t.Fatalf("liveness %+v %v", l, err)
	}
	page, err := d.WalkStream(ctx, 1, 10)
	if err != nil || len(page.Dead) != 2 {
		t.Fatalf("walk %+v %v", page, err)
	}
	// Retention ahead of an absorb: dead chunks are never inserted.
	breakRow(t, d, "UPDATE chain SET watermark_seq = 11")
	got, err := d.AbsorbSlot(ctx, slotOf(4, 3, 1))
	if err != nil || got.Inserted != 1 || got.Dead != 2 {
		t.Fatalf("absorbed %+v %v", got, err)
	}
	s, err := d.Stream(ctx, "stream-0000000")
	if err != nil || s.Last.Seq != 10 {
		t.Fatalf("tip of a dead chunk's stream %+v %v", s, err)
	}
}

// TestAuditBound: the table keeps the newest rows.
func TestAuditBound(t *testing.T) {
	d := openAt(t, filepath.Join(t.TempDir(), "catalog.db"), nil)
	ctx := context.Background()
	if err := d.Audit(ctx, "first", "", ""); err != nil {
		t.Fatal(err)
	}
	breakRow(t, d, "INSERT INTO audit (seq, time, kind, subject, detail) VALUES (?, 0, 'jump', '', '')", catalog.AuditKept)
	if err := d.Audit(ctx, "last", "", ""); err != nil {
		t.Fatal(err)
	}
	rows, err := d.AuditRows(ctx, 0, 10)
	if err != nil || len(rows) != 2 || rows[0].Kind != "jump" {
		t.Fatalf("rows %+v %v", rows, err)
	}
}

// TestNamedSlotStays: were a slot condemned that a ref names, by a bug or by hand,
// the last look sees it.
func TestNamedSlotStays(t *testing.T) {
	d := openAt(t, filepath.Join(t.TempDir(), "catalog.db"), nil)
	prepareChain(t, d)
	absorbN(t, d, 2, 3)
	ctx := context.Background()
	breakRow(t, d, "UPDATE chain SET rewritten = 3, condemned = 3, condemned_at = 1")
	p, err := d.DueSlots(ctx, testChain, 10)
	if err != nil || !p.Due || len(p.Named) != 6 {
		t.Fatalf("due %v, %d named, %v", p.Due, len(p.Named), err)
	}
	var c *catalog.ConflictError
	if _, err := d.AdvanceTrim(ctx, testChain, 1, 2); !errors.As(err, &c) || c.Guard != "refs" {
		t.Fatalf("want a conflict about refs, got %v", err)
	}
	if row, err := d.Chain(ctx, testChain); err != nil || row.Trimmed != 1 {
		t.Fatalf("trimmed %d, %v", row.Trimmed, err)
	}
}
