package fsstore

import (
	"container/heap"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/strandline/strandline/objstore"
)

// List implements objstore.Driver. It reads only directories that can hold a key
// of the page, from the deepest one that prefix names.
func (d *Driver) List(ctx context.Context, prefix, startAfter, token string, limit int) (objstore.Page, error) {
	const op = objstore.OpList
	if limit <= 0 || limit > 1000 {
		return objstore.Page{}, invalid(op, prefix, "a page of %d: give 1 to 1,000", limit)
	}
	page, err := d.walk(prefix, max(startAfter, token)).page(ctx, limit)
	if err == nil {
		// What was found missing on the way was deleted, if the bucket still stands.
		err = d.stands(op, prefix)
	}
	if err != nil {
		return objstore.Page{}, fsError(string(op), prefix, err)
	}
	return page, nil
}

// walk visits the keys under prefix that are greater than after, in key order.
type walk struct {
	prefix, after string
	todo          frontier
	opened        int // directories read
}

// walk begins at the deepest directory that holds all keys under prefix.
func (d *Driver) walk(prefix, after string) *walk {
	w := &walk{prefix: prefix, after: after}
	i := strings.LastIndexByte(prefix, '/')
	switch {
	case i < 0:
		w.todo = frontier{{path: d.root, dir: true}}
	case objstore.CheckKey(prefix[:i]) == nil:
		w.todo = frontier{{key: prefix[:i+1], path: d.dirPath(prefix[:i]), dir: true}}
	default: // no key begins so, and no path may be formed of it
	}
	return w
}

// node is an object, or a directory whose keys all begin with key.
type node struct {
	key, path string
	dir       bool
}

// frontier is a heap by key. No key in a directory sorts before the directory's
// own prefix, so popping the least and opening it if it is a directory gives all
// keys in order, whatever "/" and cut names do to the order of file names.
type frontier []node

func (f frontier) Len() int           { return len(f) }
func (f frontier) Less(i, j int) bool { return f[i].key < f[j].key }
func (f frontier) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)        { *f = append(*f, x.(node)) }
func (f *frontier) Pop() any {
	last := len(*f) - 1
	n := (*f)[last]
	*f = (*f)[:last]
	return n
}

func (w *walk) page(ctx context.Context, limit int) (objstore.Page, error) {
	var page objstore.Page
	for w.todo.Len() > 0 {
		if err := ctx.Err(); err != nil {
			return objstore.Page{}, err
		}
		if len(page.Objects) == limit {
			page.Next = page.Objects[limit-1].Key
			return page, nil
		}
		n := heap.Pop(&w.todo).(node)
		if n.dir {
			if err := w.open(n); err != nil {
				return objstore.Page{}, err
			}
			continue
		}
		info, err := listed(n)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted since its directory was read
		}
		if err != nil {
			return objstore.Page{}, err
		}
		page.Objects = append(page.Objects, info)
	}
	return page, nil
}

// open puts the entries of a directory that may matter on the frontier.
func (w *walk) open(dir node) error {
	w.opened++
	f, err := os.Open(dir.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // pruned, or a prefix under which nothing stands
	}
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, e := range entries {
		isDir := e.IsDir()
		if !isDir && !e.Type().IsRegular() {
			continue // nothing that this package makes
		}
		add, ok := entryKey(e.Name(), isDir)
		n := node{key: dir.key + add, path: filepath.Join(dir.path, e.Name()), dir: isDir}
		if ok && w.wants(n) {
			heap.Push(&w.todo, n)
		}
	}
	return nil
}

func (w *walk) wants(n node) bool {
	if !n.dir {
		return strings.HasPrefix(n.key, w.prefix) && n.key > w.after
	}
	if !strings.HasPrefix(n.key, w.prefix) && !strings.HasPrefix(w.prefix, n.key) {
		return false
	}
	// All keys in it begin with n.key: they sort as it does against after, unless
	// after lies among them.
	return n.key > w.after || strings.HasPrefix(w.after, n.key)
}

// listed describes an object. A damaged file is listed without an ETag, so that a
// listing shows all there is and fsck can say what is wrong with it.
func listed(n node) (objstore.Info, error) {
	f, r, err := openRecord(n.path)
	if errors.Is(err, errRecord) {
		st, serr := os.Stat(n.path)
		if serr != nil {
			return objstore.Info{}, serr
		}
		return objstore.Info{Key: n.key, Size: st.Size(), Modified: st.ModTime()}, nil
	}
	if err != nil {
		return objstore.Info{}, err
	}
	info := r.info(n.key)
	info.Meta = nil
	return info, f.Close()
}
