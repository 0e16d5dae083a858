package fsstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/strandline/strandline/objstore"
)

// Delete implements objstore.Driver: unlink all, sync each directory once, prune.
func (d *Driver) Delete(ctx context.Context, keys []string) ([]objstore.DeleteResult, error) {
	const op = objstore.OpDelete
	if len(keys) > maxDelete {
		return nil, invalid(op, keys[0], "%d keys, the most is %d a call: use Store.Delete", len(keys), maxDelete)
	}
	out := make([]objstore.DeleteResult, len(keys))
	dirs := map[string]error{}
	for i, key := range keys {
		out[i].Key = key
		if out[i].Err = begin(ctx, op, key); out[i].Err != nil {
			continue
		}
		if out[i].Err = d.unlink(ctx, key); out[i].Err == nil {
			dirs[filepath.Dir(d.objectPath(key))] = nil
		}
	}
	d.settleAll(dirs)
	if len(keys) > 0 {
		if err := d.stands(op, keys[0]); err != nil {
			return nil, err
		}
	}
	for i, key := range keys {
		if out[i].Err == nil {
			out[i].Err = unknown(op, key, dirs[filepath.Dir(d.objectPath(key))])
		}
	}
	for dir, err := range dirs {
		if err == nil && d.at("prune") == nil {
			d.prune(dir)
		}
	}
	return out, nil
}

// settleAll makes unlinks durable, and puts what went wrong to each directory.
func (d *Driver) settleAll(dirs map[string]error) {
	for dir := range dirs {
		// A crash here may bring the objects back after a power loss; they were not
		// acknowledged as gone. A key found absent is synced too: that may be the
		// unlink of a process that died before its sync.
		dirs[dir] = d.at("syncdelete")
		if dirs[dir] == nil {
			dirs[dir] = d.settleAbsence(dir)
		}
	}
}

// unlink removes one name. The lock keeps it from falling between the look and the
// rename of a replace, which would bring the object back.
func (d *Driver) unlink(ctx context.Context, key string) error {
	release, err := d.lock(ctx, objstore.OpDelete, key)
	if err != nil {
		return err
	}
	defer release()
	err = d.at("unlink")
	if err == nil {
		err = os.Remove(d.objectPath(key))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fsError("delete", key, err)
}
