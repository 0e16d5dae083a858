package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// TestCancelledReads: a read that is given up at any moment leaves its connection fit
// for the next one.
func TestCancelledReads(t *testing.T) {
	d := openAt(t, filepath.Join(t.TempDir(), "catalog.db"), nil)
	if _, err := d.EnsureTopology(t.Context(), catalog.Topology{
		Epoch: 1, Shards: 1, Class: segment.ClassStandard, Buckets: []string{"b"}, State: catalog.TopologyOpen,
	}); err != nil {
		t.Fatal(err)
	}
	cut := 0
	for try := range 400 {
		var g errgroup.Group
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(try)*time.Microsecond/2)
		for range 4 {
			g.Go(func() error {
				_, err := d.Chain(ctx, segment.Chain{Epoch: 1})
				return err
			})
		}
		if err := g.Wait(); err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("a cancelled read: %v", err)
			}
			cut++
		}
		cancel()
		for range 4 { // each connection
			if _, err := d.Chain(t.Context(), segment.Chain{Epoch: 1}); err != nil {
				t.Fatalf("the read after a cancelled one: %v", err)
			}
		}
	}
	if cut == 0 {
		t.Fatal("no read was cut")
	}
}

// TestSnapshotLeftOpen: a connection that still has a snapshot gives the next reader a
// new one.
func TestSnapshotLeftOpen(t *testing.T) {
	d := openAt(t, filepath.Join(t.TempDir(), "catalog.db"), nil)
	for range cap(d.readers) {
		c := <-d.readers
		if err := (&tx{ctx: t.Context(), c: c}).control("BEGIN"); err != nil {
			t.Fatal(err)
		}
		d.readers <- c
	}
	for range cap(d.readers) {
		if _, err := d.Settings(t.Context()); !errors.Is(err, catalog.ErrNotFound) {
			t.Fatalf("the next read: %v", err)
		}
	}
}
