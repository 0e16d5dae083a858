package postgres

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
)

// moment is the clock, with a look at the schema's version: a newer build may bring it up
// while this process runs, and from then on nothing here knows what the rows mean. It is
// the server that ends the transaction (by a division by 0, for it has no other way to
// refuse): a COMMIT behind it in the same round trip is not carried out.
const moment = "SELECT clock_timestamp() FROM goose_db_version WHERE is_applied HAVING 1 / (CASE WHEN max(version_id) > $1::bigint THEN 0 ELSE 1 END) = 1"

// newerWait bounds the question for the version behind a verb that was refused.
const newerWait = 5 * time.Second

// refused explains an error that has no kind. It may be that of moment, or of a statement
// that the newer schema does not take.
func (d *DB) refused(ctx context.Context, err error) error {
	code := codeOf(err)
	if code == "" || catalog.KindOf(err) != nil || kindOf(err) != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), newerWait)
	defer cancel()
	var have int64
	asked := d.pool.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&have)
	if asked != nil && code == codeByZero {
		have = schemaVersion + 1 // at least: no other statement divides
	}
	if have <= schemaVersion {
		return err
	}
	err = catalog.NewerSchema("schema "+d.schema+" of the catalog", have, schemaVersion)
	d.newer.Store(&err)
	return err
}

// Newer tells what the latest transaction found.
func (d *DB) Newer() error {
	if err := d.newer.Load(); err != nil {
		return *err
	}
	return nil
}

var _ catalog.Versioned = (*DB)(nil)
