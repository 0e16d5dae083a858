//go:build unix

package soak

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// judgeBucket holds the bucket against the catalog, without fsck's code: at rest it has what
// refs name, the records of the deployment, and nothing else (I5).
func (r *run) judgeBucket(ctx context.Context) error {
	named, err := r.namedKeys(ctx)
	if err != nil {
		return err
	}
	standing := map[string]bool{}
	for info, err := range r.site.store.List(ctx, "", "") {
		if err != nil {
			return fmt.Errorf("list the bucket: %w", err)
		}
		standing[info.Key] = true
		k, err := segment.ParseKey(info.Key)
		switch {
		case err != nil:
			r.complain("leak: %s is no key of ours", info.Key)
		case k.Kind == segment.KeySlot, k.Kind == segment.KeyStream, k.Kind == segment.KeyPack:
			if !named[info.Key] {
				r.complain("leak: no ref names %s (%d bytes)", info.Key, info.Size)
			}
		}
		r.report.Left[fmt.Sprint(k.Kind)]++
	}
	for key := range named {
		if !standing[key] {
			r.complain("loss: a ref names %s, which is gone (I2)", key)
		}
	}
	for key := range r.watch.settled {
		if !standing[key] {
			r.report.Reaped++
		}
	}
	for i := range segment.Shard(shards) {
		row, err := r.chain(ctx, i)
		if err != nil {
			return err
		}
		r.report.Slots += int64(row.AbsorbedEnd)
	}
	return r.judgeUploads(ctx)
}

func (r *run) namedKeys(ctx context.Context) (map[string]bool, error) {
	named := map[string]bool{}
	var after *catalog.Ref
	for {
		page, err := r.site.catalog.RefsByKey(ctx, after, 1000)
		if err != nil {
			return nil, err
		}
		for i := range page {
			named[page[i].Key] = true
		}
		if len(page) < 1000 {
			return named, nil
		}
		after = &page[len(page)-1].Ref
	}
}

// judgeUploads: no part of an unfinished upload is left.
func (r *run) judgeUploads(ctx context.Context) error {
	uploads, err := r.site.store.ListUploads(ctx, "")
	for _, u := range uploads {
		r.complain("leak: an unfinished upload of %s", u.Key)
	}
	return err
}
