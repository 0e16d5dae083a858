package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/strandline/strandline/catalog"
)

// standing demands a schema that an earlier Open made: ErrNotFound without one. readOnly:
// and of just this build's version, since nobody is going to bring it up.
func standing(ctx context.Context, config *pgx.ConnConfig, schema string, readOnly bool) error {
	var away backoff
	for {
		have, err := versionOf(ctx, config, schema)
		switch {
		case err == nil && have == 0:
			return fmt.Errorf("%w: catalog: the database has no schema %s", catalog.ErrNotFound, schema)
		case err == nil && have > schemaVersion:
			return newer(schema, have)
		case err == nil && readOnly && have != schemaVersion:
			return fmt.Errorf("%w: schema %s of the catalog has version %d, this build reads %d: start a writer or an auditor of this version once, which brings it up",
				catalog.ErrInvalid, schema, have, schemaVersion)
		case err == nil || catalog.KindOf(err) != nil || !gone(err):
			return mapError("open", err)
		}
		if wait := away.next(goneFirst, goneWait); away.spent > goneFor || !sleep(ctx, wait) {
			return mapError("open", err)
		}
	}
}

// versionOf is the schema's version, 0 if there is no schema. It makes nothing.
func versionOf(ctx context.Context, config *pgx.ConnConfig, schema string) (have int64, err error) {
	config = config.Copy()
	config.OnNotice = nil // nobody listens yet
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	var stands bool
	table := pgx.Identifier{schema, "goose_db_version"}.Sanitize()
	if err := c.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", table).Scan(&stands); err != nil || !stands {
		return 0, err
	}
	err = c.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM "+table+" WHERE is_applied").Scan(&have)
	return have, err
}
