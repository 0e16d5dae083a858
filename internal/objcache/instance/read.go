package instance

import (
	"context"
	"errors"
	"math"
	"os"

	"github.com/strandline/strandline/objstore"
)

// Reading is a range on its way out. It belongs to one goroutine.
type Reading struct {
	Info     objstore.Info
	Off, End int64 // of the range in the object

	c    *Cache
	obj  *object
	held *fill   // the last that was waited for; it may have the next block, too
	buf  *[]byte // the last block from a file
	next int64   // the first byte not given yet
	data []byte  // from next on, as far as the block goes
}

// Read opens a range; its first bytes are at hand when it returns. ifMatch may be empty.
// Any error means: ask the store.
func (c *Cache) Read(ctx context.Context, bucket, key string, r objstore.Range, ifMatch string) (*Reading, error) {
	o, err := c.use(bucket, key)
	if err != nil {
		return nil, err
	}
	rd := &Reading{c: c, obj: o}
	if err := rd.begin(ctx, r, ifMatch); err != nil {
		rd.Close()
		return nil, err
	}
	return rd, nil
}

func (rd *Reading) begin(ctx context.Context, r objstore.Range, ifMatch string) error {
	info, err := rd.learn(ctx, r)
	if err != nil {
		return err
	}
	if ifMatch != "" && ifMatch != info.ETag {
		rd.c.purge(rd.obj) // what is cached, or what was asked for, is not the object
		return ErrChanged
	}
	off, n, err := r.Resolve(info.Size)
	if err != nil {
		return &objstore.Error{Op: "get", Key: rd.obj.key, Kind: objstore.ErrRange, Err: err}
	}
	rd.Info, rd.Off, rd.End, rd.next = *info, off, off+n, off
	if n == 0 {
		return nil
	}
	return rd.load(ctx)
}

// learn gives the object's description. If it is not known, the GET that brings it
// brings the range's first blocks as well.
func (rd *Reading) learn(ctx context.Context, r objstore.Range) (*objstore.Info, error) {
	if info := rd.c.known(rd.obj); info != nil {
		return info, nil
	}
	c := rd.c
	c.mu.Lock()
	if info := rd.obj.info; info != nil {
		c.mu.Unlock()
		return info, nil
	}
	if r.Offset < 0 {
		rd.held = c.joinTail(rd.obj, -r.Offset)
	} else {
		last := int64(math.MaxInt64)
		if r != (objstore.Range{}) && r.Length > 0 && r.Offset < math.MaxInt64-r.Length {
			last = (r.Offset + r.Length - 1) / BlockBytes
		}
		rd.held = c.join(rd.obj, r.Offset/BlockBytes, last)
	}
	c.mu.Unlock()
	if err := rd.wait(ctx); err != nil {
		return nil, err
	}
	return rd.held.info, nil
}

// wait waits for the fill that is held.
func (rd *Reading) wait(ctx context.Context) error {
	select {
	case <-rd.held.done:
		rd.c.stats.misses.Add(1)
		return rd.held.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Next gives the next bytes, valid until the next call; nil at the end.
func (rd *Reading) Next(ctx context.Context) ([]byte, error) {
	if rd.next >= rd.End {
		return nil, nil
	}
	if len(rd.data) == 0 {
		if err := rd.load(ctx); err != nil {
			return nil, err
		}
	}
	p := rd.data
	rd.data, rd.next = nil, rd.next+int64(len(p))
	return p, nil
}

// load brings the block of the next byte.
func (rd *Reading) load(ctx context.Context) error {
	n := rd.next / BlockBytes
	content, info, err := rd.block(ctx, n)
	if err != nil {
		return err
	}
	if !same(info, &rd.Info) {
		return ErrChanged
	}
	from, to := rd.next-n*BlockBytes, min(rd.End-n*BlockBytes, BlockBytes)
	if int64(len(content)) < to {
		return &objstore.Error{Op: "get", Key: rd.obj.key, Kind: objstore.ErrShort, Err: errors.New("a block ends before the object does")}
	}
	rd.data = content[from:to]
	return nil
}

// looks bounds how often one block is looked for: a file that proves wrong is unlinked,
// and the fill that follows has its bytes in memory.
const looks = 4

func (rd *Reading) block(ctx context.Context, n int64) ([]byte, *objstore.Info, error) {
	if rd.held != nil {
		if content := rd.held.block(n); content != nil {
			return content, rd.held.info, nil
		}
		rd.drop()
	}
	for range looks {
		b, f := rd.c.find(rd.obj, n, (rd.End-1)/BlockBytes)
		if b != nil {
			if content := rd.fromFile(b); content != nil {
				return content, b.info, nil
			}
			continue
		}
		rd.held = f
		if err := rd.wait(ctx); err != nil {
			return nil, nil, err
		}
		if content := f.block(n); content != nil {
			return content, f.info, nil
		}
		rd.drop()
	}
	return nil, nil, &objstore.Error{Op: "get", Key: rd.obj.key, Kind: objstore.ErrUnavailable, Err: errors.New("its blocks come and go")}
}

// fromFile gives a block's content, or nil if its file does not have it any more.
func (rd *Reading) fromFile(b *block) []byte {
	if rd.buf == nil {
		rd.buf = buffers.Get().(*[]byte)
	}
	content, err := b.readFile(rd.c.root, *rd.buf)
	if err == nil {
		rd.c.policy.GetIfPresent(b.seq) // a use, to the policy
		rd.c.stats.hits.Add(1)
		rd.c.stats.hitBytes.Add(int64(len(content)))
		return content
	}
	if !errors.Is(err, os.ErrNotExist) { // evicted between the look and the read
		rd.c.stats.poisoned.Add(1)
		rd.c.cfg.Logger.Warn("a cached block is dropped: it is read from the store again", "file", b.name(), "error", err)
	}
	rd.c.discard(b)
	rd.c.policy.Invalidate(b.seq)
	return nil
}

func (rd *Reading) drop() {
	if rd.held != nil {
		rd.c.release(rd.held)
		rd.held = nil
	}
}

// Close ends the reading.
func (rd *Reading) Close() {
	rd.drop()
	if rd.buf != nil {
		buffers.Put(rd.buf)
		rd.buf = nil
	}
	rd.c.leave(rd.obj)
}
