package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/strandline/strandline/objstore"
)

// fill is one GET to the store for a run of blocks. Whoever needs one of them waits for
// it; the bytes stay in memory until the last of them is through.
type fill struct {
	obj    *object
	gen    uint64
	etag   string // "": the object is not known yet
	first  int64  // block; of a tail only known once it is done
	count  int64
	suffix int64 // a tail: this many bytes, and the start of their block
	asked  time.Time

	refs   int   // Cache.mu: of those who wait or send, and of the fill itself
	weight int64 // of Cache.memory

	done chan struct{}  // closed once the rest is set
	info *objstore.Info // allocated on its own: blocks keep it, and must not keep data
	data []byte
	err  error
}

// block gives the bytes of a block, nil if the fill does not have it.
func (f *fill) block(n int64) []byte {
	from := (n - f.first) * BlockBytes
	if n < f.first || from >= int64(len(f.data)) {
		return nil
	}
	return f.data[from:min(from+BlockBytes, int64(len(f.data)))]
}

// join gives the fill of block n, beginning one for the missing blocks up to last if
// there is none. c.mu is held.
func (c *Cache) join(o *object, n, last int64) *fill {
	if f := o.fills[n]; f != nil {
		f.refs++
		c.stats.joined.Add(1)
		return f
	}
	f := c.newFill(o)
	f.first = n
	for m := n; m <= last && f.count < fillBlocks && c.young(o, m) == nil && o.fills[m] == nil; m++ {
		if o.info != nil && m > n && m*BlockBytes >= o.info.Size {
			break
		}
		o.mark(m, f)
		f.count++
	}
	f.weight = f.count * BlockBytes
	c.begin(f)
	return f
}

// joinTail is join for the last n bytes of an object whose size is not known. c.mu is held.
func (c *Cache) joinTail(o *object, n int64) *fill {
	n = min(n, (fillBlocks-1)*BlockBytes) // enough to learn the size
	if f := o.tail; f != nil && f.suffix >= n {
		f.refs++
		c.stats.joined.Add(1)
		return f
	}
	f := c.newFill(o)
	f.suffix, f.weight = n, n+BlockBytes
	o.tail = f
	c.begin(f)
	return f
}

func (c *Cache) newFill(o *object) *fill {
	f := &fill{obj: o, gen: o.gen, done: make(chan struct{}), refs: 2}
	if o.info != nil {
		f.etag = o.info.ETag
	}
	return f
}

// begin runs a fill on its own: a reader that leaves takes nothing from the others. c.mu is held.
func (c *Cache) begin(f *fill) {
	f.obj.users++
	c.work.Go(func() {
		defer c.leave(f.obj)
		defer c.release(f)
		c.run(f)
	})
}

// release ends one's use of a fill's bytes.
func (c *Cache) release(f *fill) {
	c.mu.Lock()
	f.refs--
	last := f.refs == 0
	c.mu.Unlock()
	if last && f.weight > 0 {
		c.memory.Release(f.weight)
	}
}

func (c *Cache) run(f *fill) {
	weight := f.weight
	f.weight = 0
	if f.err = c.memory.Acquire(c.ctx, weight); f.err == nil {
		f.weight = weight
		ctx, cancel := context.WithTimeout(c.ctx, storeTimeout)
		f.err = c.fetch(ctx, f)
		cancel()
	}
	changed := errors.Is(f.err, objstore.ErrPrecondition) || errors.Is(f.err, ErrChanged)
	if f.err == nil {
		changed = !c.learn(f)
	}
	if changed {
		f.err = fmt.Errorf("%w: %s: read it from the store", ErrChanged, f.obj.key)
		c.purge(f.obj)
	}
	close(f.done)
	if f.err == nil {
		c.keep(f)
	}
	c.unmark(f)
}

// unmark: later readers find the blocks in their files, or begin anew.
func (c *Cache) unmark(f *fill) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := f.first; n < f.first+f.count; n++ {
		if f.obj.fills[n] == f {
			delete(f.obj.fills, n)
		}
	}
	if len(f.obj.fills) == 0 {
		f.obj.fills = nil // most objects have none most of the time
	}
	if f.obj.tail == f {
		f.obj.tail = nil
	}
}

// mark says that a block is on its way. Cache.mu is held.
func (o *object) mark(n int64, f *fill) {
	if o.fills == nil {
		o.fills = map[int64]*fill{}
	}
	o.fills[n] = f
}

// fetch makes the GET. One attempt: a reader that is refused asks the store itself,
// with all the patience it has.
func (c *Cache) fetch(ctx context.Context, f *fill) error {
	r := objstore.Range{Offset: f.first * BlockBytes, Length: f.count * BlockBytes}
	if f.suffix > 0 {
		// So many that they hold the whole block in which the suffix begins.
		r = objstore.Suffix(f.suffix + BlockBytes - 1)
	}
	f.asked = c.cfg.Clock()
	c.stats.storeGets.Add(1)
	body, info, err := f.obj.store.Driver().Get(ctx, f.obj.key, r, f.etag)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // only read from
	info.Key = f.obj.key
	if f.etag != "" && info.ETag != f.etag {
		return ErrChanged
	}
	if info.Size < 0 {
		return &objstore.Error{Op: "get", Key: info.Key, Kind: objstore.ErrUnsupported, Err: errors.New("the store does not say how large the object is")}
	}
	off, n, err := r.Resolve(info.Size)
	if err != nil {
		return &objstore.Error{Op: "get", Key: info.Key, Kind: objstore.ErrRange, Err: err}
	}
	data, err := readExactly(body, n)
	if err != nil {
		return &objstore.Error{Op: "get", Key: info.Key, Kind: objstore.ErrShort, Err: err}
	}
	c.stats.storeBytes.Add(n)
	if f.suffix > 0 {
		f.first = (off + BlockBytes - 1) / BlockBytes
		f.count = (info.Size+BlockBytes-1)/BlockBytes - f.first
		data = data[f.first*BlockBytes-off:]
	}
	f.info, f.data = &info, data
	return nil
}

// readExactly reads n bytes and sees the body's end behind them: a store that ignores
// ranges sends more.
func readExactly(body io.Reader, n int64) ([]byte, error) {
	data := make([]byte, n, n+1)
	if _, err := io.ReadFull(body, data); err != nil {
		return nil, err
	}
	if more, _ := io.ReadFull(body, data[n:n+1]); more > 0 {
		return nil, errors.New("the store sent more than the range asked for")
	}
	return data, nil
}

// learn holds what a GET said against what is known. False: the object changed.
func (c *Cache) learn(f *fill) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := f.obj
	if o.gen != f.gen {
		return true // forgotten meanwhile: nothing to compare with, and nothing will be kept
	}
	if o.info != nil {
		return same(o.info, f.info)
	}
	if o.dying == 0 {
		o.info = f.info
	}
	if f.suffix > 0 { // now others can find its blocks
		for n := f.first; n < f.first+f.count; n++ {
			if o.fills[n] == nil && c.young(o, n) == nil {
				o.mark(n, f)
			}
		}
	}
	return true
}

func same(a, b *objstore.Info) bool { return a.ETag == b.ETag && a.Size == b.Size }
