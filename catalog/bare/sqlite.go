package bare

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver's name in sql.Open
)

// Put is a batch that was put back.
type Put struct {
	Rows int
	Took time.Duration
}

// Size is what a catalog takes on disk.
type Size struct {
	RefBytes   int64 // of the ref table with its indexes
	TotalBytes int64 // of everything
}

// SQLite is a connection of its own to a catalog's file. It has the committer's pragmas.
// It takes no turn at the turnstile: nobody else writes while it does.
type SQLite struct {
	db   *sql.DB
	conn *sql.Conn
}

// OpenSQLite opens the file of a catalog that stands.
func OpenSQLite(ctx context.Context, path string) (*SQLite, error) {
	u := url.URL{Scheme: "file", Path: path, RawQuery: "mode=rw&_pragma=busy_timeout(5000)&_pragma=cache_size(32768)&_pragma=temp_store(MEMORY)" +
		"&_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(32768)"}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return &SQLite{db: db, conn: conn}, nil
}

// Close ends the connection.
func (s *SQLite) Close() error { return errors.Join(s.conn.Close(), s.db.Close()) }

// PutBack takes out the refs that name a key and puts them back.
func (s *SQLite) PutBack(ctx context.Context, key string) (p Put, err error) {
	const those = " FROM ref WHERE object = (SELECT id FROM object WHERE key = ?)"
	columns, rows, err := s.read(ctx, "SELECT *"+those+" ORDER BY stream, epoch, first", key)
	if err != nil {
		return p, err
	}
	if _, err := s.conn.ExecContext(ctx, "DELETE"+those, key); err != nil {
		return p, err
	}
	insert, err := s.conn.PrepareContext(ctx, "INSERT INTO ref VALUES (?"+strings.Repeat(", ?", len(columns)-1)+")")
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, insert.Close()) }()
	began := time.Now()
	tx, err := s.conn.BeginTx(ctx, nil)
	if err != nil {
		return p, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	inTx := tx.StmtContext(ctx, insert)
	for _, row := range rows {
		if _, err := inTx.ExecContext(ctx, row...); err != nil {
			return p, err
		}
	}
	if err := tx.Commit(); err != nil {
		return p, err
	}
	return Put{Rows: len(rows), Took: time.Since(began)}, nil
}

func (s *SQLite) read(ctx context.Context, query, key string) (columns []string, all [][]any, err error) {
	rows, err := s.conn.QueryContext(ctx, query, key)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if columns, err = rows.Columns(); err != nil {
		return nil, nil, err
	}
	for rows.Next() {
		row, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, nil, err
		}
		all = append(all, row)
	}
	return columns, all, rows.Err()
}

// LogPages is the length of the log in pages. It is read, and nothing is carried over.
func (s *SQLite) LogPages(ctx context.Context) (pages int, err error) {
	var busy, carried int
	err = s.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &pages, &carried)
	return pages, err
}

// Size counts the pages, those that only the log has yet included.
func (s *SQLite) Size(ctx context.Context) (size Size, err error) {
	err = s.conn.QueryRowContext(ctx, "SELECT sum(iif(name LIKE 'ref%' OR name LIKE 'sqlite_autoindex_ref%', pgsize, 0)), sum(pgsize) FROM dbstat WHERE aggregate = 1").
		Scan(&size.RefBytes, &size.TotalBytes)
	return size, err
}
