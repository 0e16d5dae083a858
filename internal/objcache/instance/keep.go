package instance

import (
	"path/filepath"

	"github.com/klauspost/crc32"

	"github.com/strandline/strandline/internal/objcache/wire"
	"github.com/strandline/strandline/objstore"
)

// keep writes a fill's blocks to files. What cannot be kept was sent all the same.
func (c *Cache) keep(f *fill) {
	if !wire.Faithful(*f.info) {
		c.stats.unkept.Add(f.count)
		return
	}
	for n := f.first; n < f.first+f.count; n++ {
		content := f.block(n)
		if content == nil {
			return // the object ends before
		}
		d := describe(f.obj.bucket, f.info, n)
		d.Length, d.CRC, d.Filled = int64(len(content)), crc32.Checksum(content, castagnoli), f.asked.UnixNano()
		if !c.keepOne(f, &d, content) {
			c.stats.unkept.Add(1)
		}
	}
}

func (c *Cache) keepOne(f *fill, d *description, content []byte) bool {
	header := encodeHeader(d)
	if len(header) > headerFixed+maxDescription {
		return false
	}
	weight := weightOf(int64(len(header)) + d.Length)
	b := &block{obj: f.obj, desc: *d, info: f.info, weight: weight}
	if !c.reserve(f, weight) {
		c.policy.CleanUp() // evicts what is over the bound
		if !c.reserve(f, weight) {
			return false
		}
	}
	// From here to insert the object counts as busy: a delete waits for this file.
	b.seq = c.next()
	if err := c.write(filepath.Join(c.root, b.name()), header, content); err != nil {
		c.settle(f.obj, weight)
		c.unwritten(err)
		return false
	}
	return c.insert(f, b)
}

// reserve takes room for a file, within the bound, unless its key was forgotten.
func (c *Cache) reserve(f *fill, weight int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !f.current() || c.used+weight > c.bound {
		return false
	}
	c.used += weight
	f.obj.busy++
	return true
}

// current: no delete came since the GET was begun. Cache.mu is held.
func (f *fill) current() bool { return f.obj.gen == f.gen && f.obj.dying == 0 }

func (c *Cache) next() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	return c.seq
}

// insert puts a written block into the index, in the place of one that is too old, or
// unlinks it if its key was forgotten while it was written. Either way it ends what reserve began.
func (c *Cache) insert(f *fill, b *block) bool {
	c.mu.Lock()
	c.held++
	drop := b
	kept := f.current() && c.young(f.obj, b.desc.Block) == nil
	if kept {
		drop = f.obj.blocks[b.desc.Block]
		f.obj.blocks[b.desc.Block] = b
	}
	if drop != nil && !c.kill(drop) {
		drop = nil
	}
	c.mu.Unlock()
	if drop != nil {
		c.drop([]*block{drop})
	}
	c.settle(f.obj, 0)
	if kept {
		c.enter(b)
	}
	return kept
}

// enter makes the policy know a block. One that was dropped in the meantime would stay
// there for nothing, so that is looked at after.
func (c *Cache) enter(b *block) {
	c.policy.Set(b.seq, b)
	c.mu.Lock()
	dead := b.dead
	c.mu.Unlock()
	if dead {
		c.policy.Invalidate(b.seq)
	}
}

// aged: a block that is older than max-age, or from the future of a clock that was set
// back, is not served.
func (c *Cache) aged(d *description) bool {
	age := c.cfg.Clock().UnixNano() - d.Filled
	return age < 0 || age > int64(c.cfg.MaxAge)
}

// find gives block n as it stands in a file, or else the fill that brings it.
func (c *Cache) find(o *object, n, last int64) (*block, *fill) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.young(o, n); b != nil {
		return b, nil
	}
	return nil, c.join(o, n, last)
}

// young is block n, unless it is too old to be served: its fill replaces it. c.mu is held.
func (c *Cache) young(o *object, n int64) *block {
	if b := o.blocks[n]; b != nil && !c.aged(&b.desc) {
		return b
	}
	return nil
}

// known is the object's description, if anything is cached or under way that has it.
func (c *Cache) known(o *object) *objstore.Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return o.info
}
