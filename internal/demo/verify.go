package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/segment"
)

// verify reads every package back, from bucket and catalog alone, and compares it
// with its files. It returns how many rows it compared.
func verify(ctx context.Context, reader *coldload.Reader, pkgs []*pkg) (int64, error) {
	var compared atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for _, p := range pkgs {
		g.Go(func() error {
			n, err := verifyPackage(ctx, reader, p)
			compared.Add(n)
			if err != nil {
				return fmt.Errorf("verify %s: %w", p.name, err)
			}
			return nil
		})
	}
	err := g.Wait()
	return compared.Load(), err
}

func verifyPackage(ctx context.Context, reader *coldload.Reader, p *pkg) (compared int64, err error) {
	next, stop := pullRows(ctx, reader, p.name)
	defer stop()
	index := -1
	for want, err := range p.lines() {
		if err != nil {
			return compared, err
		}
		index++
		if index < p.from || p.deleted {
			continue
		}
		row, err := next()
		if err != nil {
			return compared, fmt.Errorf("row %d of %d: %w", index, p.rows, err)
		}
		if uint64(row.Seq) != p.seqOf(index) {
			return compared, fmt.Errorf("row %d has seq %d, was acknowledged as %d", index, row.Seq, p.seqOf(index))
		}
		if !bytes.Equal(row.Payload, want) {
			return compared, fmt.Errorf("row %d (seq %d) differs from its file", index, row.Seq)
		}
		compared++
	}
	end := errNoMore
	if p.deleted {
		end = coldload.ErrDeleted
	}
	if _, err := next(); !errors.Is(err, end) {
		return compared, fmt.Errorf("after the last row: want %q, got %w", end.Error(), err)
	}
	return compared, nil
}

var errNoMore = errors.New("no more rows")

// pullRows turns the reader's iterator into calls.
func pullRows(ctx context.Context, reader *coldload.Reader, stream string) (next func() (coldload.Row, error), stop func()) {
	pull, stop := iter.Pull2(reader.Rows(ctx, stream, segment.Pos{}, segment.Pos{}))
	return func() (coldload.Row, error) {
		row, err, ok := pull()
		if !ok {
			return row, errNoMore
		}
		return row, err
	}, stop
}
