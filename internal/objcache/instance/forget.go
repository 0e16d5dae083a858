package instance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/strandline/strandline/objstore"
)

// Delete forgets the keys, then deletes them in their bucket. The result has one entry
// for each key, in order; a nil Err says that the key is gone there and here.
//
// Until the store has answered nothing of the keys is kept: a read that comes meanwhile
// gets what the store gives it. A key whose delete failed is cached again when it is read.
func (c *Cache) Delete(ctx context.Context, bucket string, keys []string) ([]objstore.DeleteResult, error) {
	store, ok := c.buckets[bucket]
	if !ok {
		return nil, fmt.Errorf("%w: %q is not served here", ErrOtherBucket, bucket)
	}
	objs, err := c.condemn(bucket, keys)
	defer c.bury(objs)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	c.stats.storeDeletes.Add(1)
	results, err := store.Delete(ctx, keys)
	for _, r := range results {
		if r.Err == nil {
			c.stats.deletes.Add(1)
		}
	}
	if len(results) == len(keys) {
		err = nil // the entries carry it
	}
	return results, err
}

// Evict forgets keys that somebody else deleted.
func (c *Cache) Evict(bucket string, keys []string) error {
	objs, err := c.condemn(bucket, keys)
	c.bury(objs)
	return err
}

// condemn forgets every range of the keys and lets none be kept until bury. When it
// returns, no file of theirs is left: not even a kill of this process brings one back.
func (c *Cache) condemn(bucket string, keys []string) ([]*object, error) {
	objs := make([]*object, 0, len(keys))
	for _, key := range keys {
		o, err := c.use(bucket, key)
		if err != nil {
			return objs, err
		}
		objs = append(objs, o)
		c.mu.Lock()
		o.dying++
		dead := c.forget(o)
		c.mu.Unlock()
		c.stats.forgotten.Add(1)
		c.drop(dead)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range objs {
		for o.busy > 0 {
			c.idle.Wait()
		}
	}
	return objs, nil
}

// bury ends condemn. What was read from the store meanwhile is of an older generation.
func (c *Cache) bury(objs []*object) {
	for _, o := range objs {
		c.mu.Lock()
		dead := c.forget(o) // nothing was kept: there is none
		o.dying--
		o.users--
		c.sweep(o)
		c.mu.Unlock()
		c.drop(dead)
	}
}

// forget begins a new generation of an object and gives the blocks whose files the
// caller has to unlink. Reads that come later meet neither them nor fills that are
// under way. c.mu is held.
func (c *Cache) forget(o *object) []*block {
	o.gen++
	o.info, o.tail = nil, nil
	clear(o.fills)
	var dead []*block
	for _, b := range o.blocks {
		if c.kill(b) {
			dead = append(dead, b)
		}
	}
	return dead
}

// purge forgets an object whose content is not the one that was cached.
func (c *Cache) purge(o *object) {
	c.stats.changed.Add(1)
	c.cfg.Logger.Error("an object changed under its key: all that was cached of it is dropped", "bucket", o.bucket, "key", o.key)
	c.mu.Lock()
	dead := c.forget(o)
	c.mu.Unlock()
	c.drop(dead)
}

// drop ends what forget began.
func (c *Cache) drop(dead []*block) {
	for _, b := range dead {
		c.unlink(b)
		c.policy.Invalidate(b.seq)
	}
}

// kill takes a block out of the index. The one caller that gets true unlinks it. c.mu is held.
func (c *Cache) kill(b *block) bool {
	if b.dead {
		return false
	}
	b.dead = true
	if b.obj.blocks[b.desc.Block] == b {
		delete(b.obj.blocks, b.desc.Block)
	}
	b.obj.busy++
	c.held--
	return true
}

// unlink ends what kill began.
func (c *Cache) unlink(b *block) {
	_ = os.Remove(filepath.Join(c.root, b.name())) // gone already, or found out at the next hit or start
	c.settle(b.obj, b.weight)
}

// settle ends a write or an unlink; free is the weight that is no longer used.
func (c *Cache) settle(o *object, free int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used -= free
	o.busy--
	if o.busy == 0 {
		c.idle.Broadcast()
		c.sweep(o)
	}
}

// discard drops one block: evicted, or found wrong.
func (c *Cache) discard(b *block) {
	c.mu.Lock()
	mine := c.kill(b)
	c.mu.Unlock()
	if mine {
		c.unlink(b)
	}
}
