package instance

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/strandline/strandline/objstore"
)

// bootID names the machine's run; empty where that is not known.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// recover takes up the files of an earlier process: their headers are read now (some
// tens of microseconds a file), their content at the first hit. What was cut, is too
// old, of a bucket that is not served any more, or beyond the bound, is unlinked.
//
// Unlinks are not synced: a power cut may bring the files of deleted keys back. So
// after another boot, or where boots cannot be told apart, all files go.
func (c *Cache) recover() error {
	same, err := c.sameBoot()
	if err != nil {
		return err
	}
	err = c.eachFile(func(path string, name []string) error {
		b := c.recoverable(path, name, same)
		if b == nil {
			return os.Remove(path)
		}
		return c.restore(path, b)
	})
	if err != nil {
		return fmt.Errorf("what is left in the cache's directory: %w; give this process the right to read and remove it, or another --cache-dir", err)
	}
	return nil
}

// sameBoot says whether the directory was last used in this run of the machine, and
// notes this one once nothing of another is left.
func (c *Cache) sameBoot() (bool, error) {
	path, now := filepath.Join(c.cfg.Dir, "BOOT"), c.cfg.boot()
	last, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	if now != "" && string(last) == now {
		return true, nil
	}
	// crash here, or below: the next start finds another boot, and empties again
	if err := c.eachFile(func(path string, _ []string) error { return os.Remove(path) }); err != nil {
		return false, err
	}
	return false, os.WriteFile(path, []byte(now), 0o640) //nolint:gosec // no secret
}

// eachFile visits what is called like a file of ours.
func (c *Cache) eachFile(visit func(path string, name []string) error) error {
	dirs, err := os.ReadDir(c.root)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if !dir.IsDir() || len(dir.Name()) != 2 {
			continue
		}
		files, err := os.ReadDir(filepath.Join(c.root, dir.Name()))
		if err != nil {
			return err
		}
		for _, file := range files {
			if name := ours.FindStringSubmatch(file.Name()); name != nil && file.Type().IsRegular() {
				if err := visit(filepath.Join(c.root, dir.Name(), file.Name()), name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// recoverable gives the block of a file, or nil if it is of no use.
func (c *Cache) recoverable(path string, name []string, same bool) *block {
	seq := seqOf(name[3])
	c.seq = max(c.seq, seq)
	if !same || name[4] == temporary {
		return nil
	}
	d, header, size, err := readHeader(path)
	store := c.buckets[d.Bucket]
	if err != nil || store == nil || objstore.CheckKey(d.Key) != nil || size != int64(header)+d.Length || c.aged(&d) {
		return nil
	}
	b := &block{desc: d, weight: weightOf(size), seq: seq}
	i := id{d.Bucket, d.Key}
	if hashOf(i) != name[1] || fmt.Sprintf("%08x", d.Block) != name[2] || filepath.Base(filepath.Dir(path)) != name[1][:2] {
		return nil
	}
	info := d.info()
	b.obj, b.info = &object{id: i, hash: name[1], store: store}, &info
	return b
}

// readHeader reads a file's header, and tells how long header and file are.
func readHeader(path string) (d description, header int, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return d, 0, 0, err
	}
	defer f.Close() //nolint:errcheck // only read from
	stat, err := f.Stat()
	if err != nil {
		return d, 0, 0, err
	}
	buf := make([]byte, headerFixed+maxDescription)
	n, err := io.ReadFull(f, buf)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return d, 0, 0, err
	}
	d, header, err = decodeHeader(buf[:n])
	return d, header, stat.Size(), err
}

// restore puts a block into the index. Files of one key that do not agree on its
// object all go: a key has one content.
func (c *Cache) restore(path string, b *block) error {
	c.mu.Lock()
	o := c.object(b.obj.id, b.obj.store)
	b.obj = o
	if o.info == nil {
		o.info = b.info
	}
	agrees := same(o.info, b.info)
	fits := c.used+b.weight <= c.cfg.Bytes && o.blocks[b.desc.Block] == nil
	var dead []*block
	if agrees && fits {
		o.blocks[b.desc.Block] = b
		c.used += b.weight
		c.held++
	} else if !agrees {
		dead = c.forget(o)
	}
	c.sweep(o)
	c.mu.Unlock()
	c.drop(dead)
	if !agrees || !fits {
		return os.Remove(path)
	}
	c.stats.recovered.Add(1)
	c.enter(b)
	return nil
}
