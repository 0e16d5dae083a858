package peer

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver
)

var sqliteFull = Peer{
	Name: "SQLite", Role: Rival, Module: "modernc.org/sqlite", Slow: true,
	Note: "the pure Go driver behind the committer: one transaction a batch, WAL mode, synchronous=FULL, 50 rows an INSERT, checkpoint at 64 MiB",
	Open: openSQLite, Replay: replaySQLite,
}

// sqliteRows is how many rows one INSERT takes where there are as many.
const sqliteRows = 50

type sqliteLog struct {
	db        *sql.DB
	one, many *sql.Stmt
	args      []any
}

func openSQLiteDB(dir string) (*sql.DB, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "log.db")+
		"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=wal_autocheckpoint(16384)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func openSQLite(dir string, _ Options) (Log, error) {
	db, err := openSQLiteDB(dir)
	if err != nil {
		return nil, err
	}
	l := &sqliteLog{db: db}
	_, err = db.Exec("CREATE TABLE IF NOT EXISTS log (seq INTEGER PRIMARY KEY, rec BLOB NOT NULL)")
	if err == nil {
		l.one, err = db.Prepare("INSERT INTO log (rec) VALUES (?)")
	}
	if err == nil {
		l.many, err = db.Prepare("INSERT INTO log (rec) VALUES (?)" + strings.Repeat(",(?)", sqliteRows-1))
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return commitFor(l), nil
}

func (l *sqliteLog) appendBatch(recs [][]byte) error {
	tx, err := l.db.Begin()
	if err != nil {
		return err
	}
	for len(recs) > 0 && err == nil {
		stmt, n := l.one, 1
		if len(recs) >= sqliteRows {
			stmt, n = l.many, sqliteRows
		}
		l.args = l.args[:0]
		for _, rec := range recs[:n] {
			l.args = append(l.args, rec)
		}
		_, err = tx.Stmt(stmt).Exec(l.args...)
		recs = recs[n:]
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (l *sqliteLog) Close() error { return l.db.Close() }

func replaySQLite(dir string, _ Options, sink Sink) error {
	db, err := openSQLiteDB(dir)
	if err != nil {
		return err
	}
	rows, err := db.Query("SELECT rec FROM log ORDER BY seq")
	if err != nil {
		return errors.Join(err, db.Close())
	}
	var rec sql.RawBytes
	for rows.Next() && err == nil {
		if err = rows.Scan(&rec); err == nil {
			err = sink(rec)
		}
	}
	return errors.Join(err, rows.Err(), rows.Close(), db.Close())
}
