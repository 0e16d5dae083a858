package catalogbench

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/bare"
	"github.com/strandline/strandline/catalog/sqlite"
)

// place is one throw-away catalog.
type place struct {
	cat  catalog.Catalog
	bare inserter
	drop func(context.Context) error // after both are closed
}

// inserter is the bare table beneath.
type inserter interface {
	PutBack(ctx context.Context, key string) (bare.Put, error)
	Size(ctx context.Context) (bare.Size, error)
	Close() error
}

func (p *place) close(ctx context.Context) error {
	var errs []error
	if p.bare != nil {
		errs = append(errs, p.bare.Close())
	}
	if p.cat != nil {
		errs = append(errs, p.cat.Close())
	}
	if p.drop != nil {
		errs = append(errs, p.drop(ctx))
	}
	return errors.Join(errs...)
}

// inFile makes a catalog in a file of its own under dir.
func inFile(ctx context.Context, dir string) (_ *place, err error) {
	root, err := os.MkdirTemp(dir, "strandline-bench-*")
	if err != nil {
		return nil, err
	}
	p := &place{drop: func(context.Context) error { return os.RemoveAll(root) }}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close(context.WithoutCancel(ctx)))
		}
	}()
	path := filepath.Join(root, "catalog.db")
	db, err := sqlite.Open(ctx, sqlite.Options{Path: path, Create: true})
	if err != nil {
		return nil, err
	}
	p.cat = db
	b, err := bare.OpenSQLite(ctx, path)
	if err != nil {
		return nil, err
	}
	p.bare = b
	return p, nil
}
