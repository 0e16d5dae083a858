package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// uploads reports unfinished uploads that no intent names and that are older than
// the orphan grace; younger ones may belong to a publish under way.
func (w *walk) uploads(ctx context.Context) error {
	for class, set := range w.classes {
		for _, store := range set {
			if !store.Capabilities().ListUploads {
				continue
			}
			if err := w.uploadsIn(ctx, store); err != nil {
				return fmt.Errorf("class %s: uploads of %s: %w", class, store.Name(), err)
			}
		}
	}
	return nil
}

func (w *walk) uploadsIn(ctx context.Context, store *objstore.Store) error {
	list, err := store.ListUploads(ctx, "")
	if err != nil {
		return err
	}
	var nobodys []objstore.Upload
	for _, u := range list {
		owned, err := w.owned(ctx, u)
		if err != nil {
			return err
		}
		if !owned {
			nobodys = append(nobodys, u)
			continue
		}
		w.report.Waiting++
		w.owe(OwedItem{What: "upload", ID: u.Key, Bucket: store.Name(), Why: "an unfinished upload: " + u.ID})
	}
	if len(nobodys) == 0 {
		return nil
	}
	// Its intent may have been resolved between the two looks: then the upload is gone,
	// too. MinIO lists nothing for a part of a key, so all are listed again.
	if list, err = store.ListUploads(ctx, ""); err != nil {
		return err
	}
	stands := map[string]bool{}
	for _, u := range list {
		stands[u.Key+"\x00"+u.ID] = true
	}
	for _, u := range nobodys {
		if stands[u.Key+"\x00"+u.ID] {
			w.garbage(strayUpload(store.Name(), u))
		}
	}
	return nil
}

// strayUpload is an unfinished upload that nothing names. The sweep aborts it, unless
// its key is none of ours.
func strayUpload(bucket string, u objstore.Upload) GarbageItem {
	g := GarbageItem{
		Key: u.Key, Bucket: bucket, State: Pending, Upload: u.ID,
		Why: "an unfinished upload that nothing names; the auditor's sweep aborts it",
	}
	if _, err := segment.ParseKey(u.Key); err != nil {
		g.State, g.Why = Unknown, "an unfinished upload to a key that Strandline does not form"
	}
	return g
}

// owned says whether somebody may be at work on an upload, or its intent sees to it.
func (w *walk) owned(ctx context.Context, u objstore.Upload) (bool, error) {
	if w.now.Sub(u.Initiated) < w.grace || w.publishing(u.Key) {
		return true, nil
	}
	_, err := w.cat.Intent(ctx, u.Key)
	if errors.Is(err, catalog.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// publishing says whether a living owner may be at work on the slot at key.
func (w *walk) publishing(key string) bool {
	k, err := segment.ParseKey(key)
	if err != nil || k.Kind != segment.KeySlot {
		return false
	}
	row, ok := w.chains[k.Chain]
	return ok && !row.Closed && k.ID >= row.AbsorbedEnd && w.now.Before(row.LeaseEnd)
}
