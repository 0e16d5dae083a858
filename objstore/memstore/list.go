package memstore

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/strandline/strandline/objstore"
)

// List implements objstore.Driver. A token is the last key given, behind "e" if
// an empty page comes next (Options.EmptyPages) or "f" if a full one does.
func (d *Driver) List(ctx context.Context, prefix, startAfter, token string, limit int) (objstore.Page, error) {
	if err := ctx.Err(); err != nil {
		return objstore.Page{}, fail(objstore.OpList, prefix, objstore.ErrUnavailable, "%w", err)
	}
	if limit <= 0 || limit > 1000 {
		return objstore.Page{}, fail(objstore.OpList, prefix, objstore.ErrInvalid, "a page of %d: give 1 to 1,000", limit)
	}
	if err := d.checkPrefix(objstore.OpList, prefix); err != nil {
		return objstore.Page{}, err
	}
	if token == "" {
		token = "e"
	}
	if d.opts.EmptyPages && token[0] == 'e' {
		return objstore.Page{Next: "f" + token[1:]}, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := d.keysFrom(prefix, startAfter, token[1:])
	limit = min(limit, d.opts.PageSize)
	var page objstore.Page
	if len(keys) > limit {
		keys = keys[:limit]
		page.Next = "e" + keys[limit-1]
	}
	for _, key := range keys {
		info := d.objects[key].info(key)
		info.Meta = nil
		page.Objects = append(page.Objects, info)
	}
	return page, nil
}

// checkPrefix holds listings to whole directories, where the store knows no others.
func (d *Driver) checkPrefix(op objstore.Op, prefix string) error {
	if d.opts.DirectoryPrefix && prefix != "" && !strings.HasSuffix(prefix, "/") {
		return fail(op, prefix, objstore.ErrInvalid, "a prefix ends in \"/\" here: list the directory and filter")
	}
	return nil
}

// keysFrom lists the keys under prefix that follow last in the store's order.
// d.mu is held.
func (d *Driver) keysFrom(prefix, startAfter, last string) []string {
	rank := d.order()
	var keys []string
	for key := range d.objects {
		if !strings.HasPrefix(key, prefix) || (last != "" && rank(key, last) <= 0) {
			continue
		}
		if d.opts.Shuffle == 0 && key <= startAfter {
			continue
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, rank)
	return keys
}

// order compares keys bytewise, or by a hash under the seed, which does not
// depend on what else is in the store: a listing in pages misses nothing.
func (d *Driver) order() func(a, b string) int {
	if d.opts.Shuffle == 0 {
		return strings.Compare
	}
	hash := func(key string) uint64 {
		h := fnv.New64a()
		h.Write([]byte(key)) // never fails, by hash.Hash's contract
		return rand.NewPCG(d.opts.Shuffle, h.Sum64()).Uint64()
	}
	return func(a, b string) int {
		if x, y := hash(a), hash(b); x < y {
			return -1
		} else if x > y {
			return 1
		}
		return strings.Compare(a, b)
	}
}
