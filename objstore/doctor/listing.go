package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/strandline/strandline/objstore"
)

func listingChecks() []check {
	needs := []string{actPut, actList}
	return []check{
		{
			name: "list-after-write", required: true, needs: append(needs, actDelete), run: listAfterWrite,
			proves: "a listing shows what was just written, and not what was just deleted",
			breaks: "rebuild and the orphan sweep miss objects, and a takeover misses slots",
		},
		{
			name: "list-order", needs: needs, run: listOrder, lacks: func(c *objstore.Capabilities) { c.OrderedList = false },
			proves: "listings come in bytewise order",
			breaks: "fsck and the stray duty hold a bucket's keys in memory to sort them",
		},
		{
			name: "list-start-after", needs: needs, run: listStartAfter, lacks: func(c *objstore.Capabilities) { c.StartAfter = false },
			proves: "a listing begins after a given key",
			breaks: "whatever resumes in a listing reads it from its start",
		},
		{
			name: "list-pages", required: true, needs: needs, run: listPages,
			proves: "pages follow one another without a key lost or told twice",
			breaks: "fsck, sweep and rebuild see a part of the bucket",
		},
		{
			name: "list-prefix", required: true, needs: needs, run: listPrefix,
			proves: "the prefix p/1/ does not hit p/10/",
			breaks: "tearing down one stream tears down its neighbour",
		},
		{
			name: "uploads-by-key", required: true, needs: []string{actPut, actListUploads, actAbort}, run: uploadsByKey,
			proves: "an unfinished upload is listed under its exact key, until it is aborted",
			breaks: "the orphan judge cannot see a dead upload; its parts are billed for ever",
		},
		{
			name: "uploads-by-prefix", needs: []string{actPut, actListUploads, actAbort}, run: uploadsByPrefix,
			lacks:  func(c *objstore.Capabilities) { c.ListUploads = false },
			proves: "unfinished uploads are listed by prefix",
			breaks: "uploads whose key nobody remembers are not found: set a lifecycle rule that aborts them",
		},
	}
}

// shelfNames are told apart by what stores get wrong: case, the slash between its
// neighbours in ASCII, and one name that begins another.
// It is never changed.
var shelfNames = [...]string{"p/10/x", "b", "a~", "p/1/x", "a0", "a/x", "B", "p/1-x", "a-", "a.x"}

// books writes the shelf, once, in an order that is none.
func (t *trial) books(ctx context.Context) (prefix string, sorted []string, err error) {
	prefix = t.session.dir + "shelf/"
	if t.shelf == nil {
		var keys []string
		for _, name := range shelfNames {
			if _, err := t.make(ctx, prefix+name, []byte(name)); err != nil {
				return prefix, nil, err
			}
			keys = append(keys, prefix+name)
		}
		slices.Sort(keys)
		t.shelf = keys
	}
	return prefix, t.shelf, nil
}

func listAfterWrite(ctx context.Context, t *trial) error {
	key := t.key("key")
	put, err := t.make(ctx, key, tenBytes)
	if err != nil {
		return err
	}
	list, err := t.listed(ctx, t.dir, "", maxList)
	if err != nil {
		return err
	}
	if len(list) != 1 || list[0].Key != key {
		return lies("after a write of one key the listing shows %d", len(list))
	}
	if o := list[0]; o.Size != put.Size || o.ETag != put.ETag {
		return lies("the listing tells %d bytes and ETag %q, the PUT wrote %d and answered %q", o.Size, o.ETag, put.Size, put.ETag)
	}
	if err := t.remove(ctx, key); err != nil {
		return err
	}
	list, err = t.listed(ctx, t.dir, "", maxList)
	if err == nil && len(list) > 0 {
		err = lies("the listing shows a key that was deleted")
	}
	return err
}

func listOrder(ctx context.Context, t *trial) error {
	if !t.d.Capabilities().OrderedList {
		return skips("the driver declares no order")
	}
	prefix, want, err := t.books(ctx)
	if err != nil {
		return err
	}
	list, err := t.listed(ctx, prefix, "", maxList)
	if err != nil {
		return err
	}
	got := keysOf(list)
	switch {
	case slices.Equal(got, want):
		return nil
	case !slices.IsSorted(got):
		return lies("the listing is not in order: %s", names(got, prefix))
	default:
		return lies("the listing shows %s", names(got, prefix))
	}
}

func names(keys []string, prefix string) string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = strings.TrimPrefix(k, prefix)
	}
	return strings.Join(out, " ")
}

func listStartAfter(ctx context.Context, t *trial) error {
	if !t.d.Capabilities().StartAfter {
		return skips("the driver does not declare it")
	}
	prefix, want, err := t.books(ctx)
	if err != nil {
		return err
	}
	list, err := t.listed(ctx, prefix, want[3], maxList)
	if err != nil {
		return err
	}
	got := slices.Sorted(slices.Values(keysOf(list)))
	if !slices.Equal(got, want[4:]) {
		return lies("a listing after %s shows %s", strings.TrimPrefix(want[3], prefix), names(got, prefix))
	}
	return nil
}

func listPages(ctx context.Context, t *trial) error {
	prefix, want, err := t.books(ctx)
	if err != nil {
		return err
	}
	list, err := t.listed(ctx, prefix, "", 2)
	if err != nil {
		return err
	}
	got := slices.Sorted(slices.Values(keysOf(list)))
	if !slices.Equal(got, want) {
		return lies("%d keys in pages of two come as: %s", len(want), names(got, prefix))
	}
	return nil
}

func listPrefix(ctx context.Context, t *trial) error {
	prefix, _, err := t.books(ctx)
	if err != nil {
		return err
	}
	list, err := t.listed(ctx, prefix+"p/1/", "", maxList)
	if err != nil {
		return err
	}
	if got := keysOf(list); len(got) != 1 || got[0] != prefix+"p/1/x" {
		return lies("the prefix p/1/ shows %q", names(got, prefix))
	}
	if t.d.Capabilities().DirectoryPrefix {
		t.detail = "prefixes end in a slash here"
		return nil
	}
	list, err = t.listed(ctx, prefix+"p/1", "", maxList)
	if err == nil && len(list) != 3 {
		err = lies("the prefix p/1 shows %q, not all that begins with it", names(keysOf(list), prefix))
	}
	return err
}

func uploadsByKey(ctx context.Context, t *trial) error {
	key := t.key("key")
	id, err := t.d.CreateUpload(ctx, key, nil)
	if err != nil {
		return err
	}
	found, err := t.hasUpload(ctx, key, id)
	if err != nil {
		return err
	}
	if !found {
		return lies("an upload that was just begun is not listed under its key")
	}
	if err := t.d.Abort(ctx, key, id); err != nil {
		return err
	}
	found, err = t.hasUpload(ctx, key, id)
	if err == nil && found {
		err = lies("an aborted upload is still listed")
	}
	return err
}

func uploadsByPrefix(ctx context.Context, t *trial) error {
	if !t.d.Capabilities().ListUploads {
		return skips("the driver does not rely on it: this store shows uploads by exact key only, or forgets them at a restart")
	}
	key := t.key("key")
	id, err := t.d.CreateUpload(ctx, key, nil)
	if err != nil {
		return err
	}
	list, err := t.d.ListUploads(ctx, t.dir)
	found := slices.ContainsFunc(list, func(u objstore.Upload) bool { return u.Key == key && u.ID == id })
	if err == nil && !found {
		err = lacks("an upload that was just begun is not listed under a prefix of its key")
	}
	return errors.Join(err, t.d.Abort(ctx, key, id))
}
