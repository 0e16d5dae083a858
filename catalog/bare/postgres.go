package bare

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres is a connection of its own to a catalog's database.
type Postgres struct {
	conn   *pgx.Conn
	schema string
}

// OpenPostgres connects to the database of a catalog that stands in a schema.
func OpenPostgres(ctx context.Context, dsn, schema string) (*Postgres, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err // pgx says where, and leaves the password out
	}
	return &Postgres{conn: conn, schema: schema}, nil
}

// Close ends the connection.
func (p *Postgres) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return p.conn.Close(ctx)
}

func (p *Postgres) table(name string) string { return pgx.Identifier{p.schema, name}.Sanitize() }

// PutBack takes out the refs that name a key and puts them back.
func (p *Postgres) PutBack(ctx context.Context, key string) (Put, error) {
	those := " FROM " + p.table("ref") + " WHERE object = (SELECT id FROM " + p.table("object") + " WHERE key = $1)"
	rows, err := p.conn.Query(ctx, "SELECT *"+those+" ORDER BY stream, epoch, first", key)
	if err != nil {
		return Put{}, err
	}
	var columns []string
	for _, f := range rows.FieldDescriptions() {
		columns = append(columns, f.Name)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	if err != nil {
		return Put{}, err
	}
	if _, err := p.conn.Exec(ctx, "DELETE"+those, key); err != nil {
		return Put{}, err
	}
	began := time.Now()
	n, err := p.conn.CopyFrom(ctx, pgx.Identifier{p.schema, "ref"}, columns, pgx.CopyFromRows(all)) // a transaction of its own
	if err != nil {
		return Put{}, err
	}
	return Put{Rows: int(n), Took: time.Since(began)}, nil
}

// Size asks for the files' lengths.
func (p *Postgres) Size(ctx context.Context) (size Size, err error) {
	err = p.conn.QueryRow(ctx, `SELECT coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relname = 'ref'), 0)::bigint,
		coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`, p.schema).
		Scan(&size.RefBytes, &size.TotalBytes)
	return size, err
}

// DropSchema removes a throw-away catalog.
func DropSchema(ctx context.Context, dsn, schema string) error {
	p, err := OpenPostgres(ctx, dsn, schema)
	if err != nil {
		return err
	}
	_, err = p.conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE")
	if err != nil {
		err = fmt.Errorf("drop the schema %s: %w; drop it by hand", schema, err)
	}
	if cerr := p.Close(); err == nil {
		err = cerr
	}
	return err
}
