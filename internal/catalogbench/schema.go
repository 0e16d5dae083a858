package catalogbench

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/strandline/strandline/catalog/bare"
	"github.com/strandline/strandline/catalog/postgres"
)

// statementTimeout is generous: a verb that takes long is what is measured, not an error.
const statementTimeout = 10 * time.Minute

// inSchema makes a catalog in a schema of its own in the database given.
func inSchema(ctx context.Context, dsn string) (_ *place, err error) {
	schema := "strandline_bench_" + strings.ToLower(rand.Text())[:12]
	p := &place{drop: func(ctx context.Context) error { return bare.DropSchema(ctx, dsn, schema) }}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close(context.WithoutCancel(ctx)))
		}
	}()
	db, err := postgres.Open(ctx, postgres.Options{DSN: dsn, Schema: schema, StatementTimeout: statementTimeout})
	if err != nil {
		p.drop = nil // most often the server is not there: it would be waited for once more
		return nil, err
	}
	p.cat = db
	b, err := bare.OpenPostgres(ctx, dsn, schema)
	if err != nil {
		return nil, err
	}
	p.bare = b
	return p, nil
}
