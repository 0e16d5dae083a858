package auditor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// ErrNotOurs: a bucket was emptied or replaced since the start, or is another
// deployment's. No delete follows.
var ErrNotOurs = errors.New("the bucket is not the one that this catalog belongs to")

// stampsFresh bounds the looks at the stamps, whatever they say: a GET a bucket and
// minute.
const stampsFresh = time.Minute

// stampState is the last look at all buckets' stamps.
type stampState struct {
	at  time.Time
	err error
}

// belongs looks whether every bucket still has our stamp: a bucket can be emptied,
// replaced or mounted over under a running auditor, and what stands there then is not
// ours to delete, nor to take for lost. nil means that deletes may go on.
func (g *guard) belongs(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock()
	if !g.stamps.at.IsZero() && now.Sub(g.stamps.at) < stampsFresh {
		return g.stamps.err
	}
	err := g.checkStamps(ctx)
	if ctx.Err() != nil {
		return err // a look that a stop cut short says nothing
	}
	told := g.stamps.err != nil && err != nil && g.stamps.err.Error() == err.Error()
	g.stamps = stampState{now, err}
	if told || !errors.Is(err, ErrNotOurs) {
		return err
	}
	g.log.Error("deletes stop: a bucket is not ours any more", "error", err)
	return errors.Join(err, g.cat.Audit(ctx, "bucket", "auditor", err.Error()))
}

func (g *guard) checkStamps(ctx context.Context) error {
	settings, err := g.cat.Settings(ctx)
	if err != nil {
		return fmt.Errorf("read the deployment's id: %w", err)
	}
	var errs []error
	for _, class := range slices.Sorted(maps.Keys(g.classes)) {
		for _, store := range g.classes[class] {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			errs = append(errs, checkStamp(ctx, store, segment.Stamp{Deployment: settings.Deployment, Class: segment.Class(class)}))
		}
	}
	return errors.Join(errs...)
}

// maxStamp bounds the record that is read.
const maxStamp = 1 << 20

// checkStamp holds one bucket's stamp against what it has to say. One that could not be
// read is no verdict, and no leave to delete either.
func checkStamp(ctx context.Context, store *objstore.Store, want segment.Stamp) error {
	body, _, err := store.ReadAll(ctx, segment.StampKey(), maxStamp)
	if errors.Is(err, objstore.ErrNotFound) {
		return fmt.Errorf("%w: %s has no stamp any more: it was emptied, or another one is mounted or served in its place. "+
			"Nothing is deleted. Look at --store; if the bucket is lost, stop every writer and restore it, or begin anew with an empty catalog", ErrNotOurs, store.Name())
	}
	if err != nil {
		return fmt.Errorf("read the stamp of %s: %w", store.Name(), err)
	}
	have, err := segment.DecodeStamp(body)
	if err != nil {
		return fmt.Errorf("the stamp of %s: %w", store.Name(), segment.InFile(err, segment.StampKey(), 0))
	}
	if have.Deployment != want.Deployment || have.Class != want.Class {
		return fmt.Errorf("%w: %s is stamped by deployment %s for class %q, the catalog is of %s and wants %q. "+
			"Nothing is deleted. Stop this auditor and look at --store and --catalog", ErrNotOurs, store.Name(), have.Deployment, have.Class, want.Deployment, want.Class)
	}
	return nil
}
