package bare

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
)

// TestLogPages: the log's length grows with what is written, and asking for it carries
// nothing over into the file.
func TestLogPages(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "catalog.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := db.ExecContext(ctx, "PRAGMA journal_mode = WAL; PRAGMA user_version = 1; CREATE TABLE t (x); PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSQLite(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.LogPages(ctx); err != nil || n != 0 {
		t.Fatalf("an empty log of %d pages, %v", n, err)
	}
	// 100 pages of a row that overflows, and a few of the table.
	if _, err := s.conn.ExecContext(ctx, "INSERT INTO t VALUES (zeroblob(400000))"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if n, err := s.LogPages(ctx); err != nil || n < 98 || n > 105 {
			t.Fatalf("%d pages, %v", n, err)
		}
	}
	if after, err := os.Stat(path); err != nil || after.Size() != before.Size() {
		t.Errorf("the file has %d bytes after %d, %v: the log was carried over", after.Size(), before.Size(), err)
	}
}
