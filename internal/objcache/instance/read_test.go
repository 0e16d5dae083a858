package instance

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
)

const mib = 1 << 20

func TestRangesEqualTheStores(t *testing.T) {
	x := newRig(t, Config{})
	for _, o := range []struct {
		key  string
		size int64
	}{{"seg/tiny", 7}, {"seg/block", mib}, {"seg/over", mib + 1}, {"seg/large", 4*mib + 333}} {
		x.put(o.key, int(o.size))
		for _, r := range []objstore.Range{
			objstore.Whole,
			{},
			span(0, 1), span(o.size-1, 1), span(o.size/2, o.size), span(o.size/3, 3*mib), objstore.Suffix(5), objstore.Suffix(o.size),
			objstore.Suffix(1 << 40), objstore.Suffix(mib),
			{Offset: o.size / 2, Length: -1},
			span(0, 1<<62),
		} {
			x.same(o.key, r)
			x.ok(x.cache.Evict(testBucket, []string{o.key})) // next: cold
			x.same(o.key, r)
			x.settled()
			x.same(o.key, r) // from files, or mostly
		}
	}
	x.put("seg/empty", 0)
	if _, _, err := x.read("seg/empty", objstore.Whole); !errors.Is(err, objstore.ErrRange) {
		t.Errorf("nothing of it can be cached: %v", err)
	}
	if s := x.cache.Stats(); s.Poisoned+s.Changed+s.WriteErrors > 0 || s.Hits == 0 {
		t.Errorf("%+v", s)
	}
}

func TestHotReadsAskNothing(t *testing.T) {
	x := newRig(t, Config{})
	x.put("seg/a", 9*mib+5)
	if n := x.asked(func() { x.same("seg/a", objstore.Whole) }); n != 1 {
		t.Errorf("cold: %d GETs of one run of ten blocks", n)
	}
	x.settled()
	for _, r := range []objstore.Range{objstore.Whole, span(100, 5*mib), objstore.Suffix(64 << 10)} {
		if n := x.asked(func() { x.same("seg/a", r) }); n != 0 {
			t.Errorf("hot %+v: %d GETs", r, n)
		}
	}
	x.put("seg/b", 40*mib)
	if n := x.asked(func() { x.same("seg/b", objstore.Whole) }); n != 3 {
		t.Errorf("40 MiB came in %d GETs of at most 16 MiB", n)
	}
}

// A suffix of an object that is not known takes one GET, which brings whole blocks.
func TestSuffixLearnsTheSize(t *testing.T) {
	x := newRig(t, Config{})
	x.put("seg/a", 3*mib+100)
	if n := x.asked(func() { x.same("seg/a", objstore.Suffix(64<<10)) }); n != 1 {
		t.Errorf("%d GETs", n)
	}
	x.settled()
	if n := x.asked(func() {
		x.same("seg/a", objstore.Suffix(60<<10))
		x.same("seg/a", span(2*mib, 1000))
		x.same("seg/a", span(3*mib+1, 99))
	}); n != 0 {
		t.Errorf("%d more GETs for blocks that came with it", n)
	}
}

// 64 readers at once are one fill.
func TestReadersOfOneMissAreOneFill(t *testing.T) {
	for name, r := range map[string]objstore.Range{"range": span(mib/2, 6*mib), "suffix": objstore.Suffix(1000)} {
		t.Run(name, func(t *testing.T) {
			x := newRig(t, Config{})
			x.put("seg/a", 8*mib)
			gate := make(chan struct{})
			x.setFault(func(c faultstore.Call) faultstore.Fault { return faultstore.Fault{Before: func() { <-gate }} })
			var readers sync.WaitGroup
			got := make(chan int, 64)
			for range 64 {
				readers.Go(func() {
					b, _, err := x.read("seg/a", r)
					if err != nil {
						t.Error(err)
					}
					got <- len(b)
				})
			}
			x.until("63 readers join", func() bool { return x.cache.Stats().Joined == 63 })
			close(gate)
			readers.Wait()
			for range 64 {
				if n := <-got; n != int(min(6*mib, max(r.Length, 1000))) {
					t.Errorf("%d bytes", n)
				}
			}
			if n := x.gets.Load(); n != 1 {
				t.Errorf("%d GETs for 64 readers", n)
			}
		})
	}
}

// Runs that overlap are filled once where they do.
func TestOverlappingRunsShare(t *testing.T) {
	x := newRig(t, Config{})
	x.put("seg/a", 12*mib)
	gate := make(chan struct{})
	x.setFault(func(c faultstore.Call) faultstore.Fault {
		if c.N == 2 { // the first GET below
			return faultstore.Fault{Before: func() { <-gate }}
		}
		return faultstore.Fault{}
	})
	x.same("seg/a", span(11*mib, 10)) // the size is known now
	x.settled()
	var readers sync.WaitGroup
	readers.Go(func() { x.same("seg/a", span(0, 6*mib)) })
	x.until("the first fill begins", func() bool { return x.gets.Load() == 2 })
	readers.Go(func() { x.same("seg/a", span(4*mib, 6*mib)) })
	x.until("the second joins it", func() bool { return x.cache.Stats().Joined == 1 })
	close(gate)
	readers.Wait()
	if s := x.cache.Stats(); s.StoreBytes != 11*mib {
		t.Errorf("%d MiB were read of the store for blocks 0 to 9 and 11", s.StoreBytes/mib)
	}
}

func TestWhatTheStoreRefuses(t *testing.T) {
	x := newRig(t, Config{})
	x.put("seg/a", 100)
	if _, _, err := x.read("seg/none", objstore.Whole); !errors.Is(err, objstore.ErrNotFound) {
		t.Error(err)
	}
	if _, _, err := x.read("seg/a", span(100, 1)); !errors.Is(err, objstore.ErrRange) {
		t.Error(err)
	}
	if _, err := x.cache.Read(t.Context(), "other/standard", "seg/a", objstore.Whole, ""); !errors.Is(err, ErrOtherBucket) {
		t.Error(err)
	}
	if _, _, err := x.read("../etc", objstore.Whole); !errors.Is(err, objstore.ErrInvalid) {
		t.Error(err)
	}
	x.setFault(func(c faultstore.Call) faultstore.Fault {
		return faultstore.Fault{Kind: faultstore.ShortBody, Keep: 10}
	})
	x.ok(x.cache.Evict(testBucket, []string{"seg/a"}))
	if _, _, err := x.read("seg/a", objstore.Whole); !errors.Is(err, objstore.ErrShort) {
		t.Error(err)
	}
	x.setFault(nil)
	x.same("seg/a", objstore.Whole) // a failed fill leaves nothing behind
}

// A disk that takes nothing fails no read.
func TestFullDisk(t *testing.T) {
	x := newRig(t, Config{})
	x.cache.write = func(path string, header, _ []byte) error {
		return errors.Join(os.WriteFile(path+temporary, header, 0o600), os.Remove(path+temporary), errors.New("no space left on device"))
	}
	x.put("seg/a", 5*mib)
	for range 2 {
		if n := x.asked(func() { x.same("seg/a", objstore.Whole) }); n != 1 {
			t.Errorf("%d GETs", n)
		}
		x.settled()
	}
	if s := x.cache.Stats(); s.WriteErrors != 10 || s.Unkept != 10 || s.Bytes != 0 || s.Blocks != 0 || len(x.files()) != 0 {
		t.Errorf("%+v, files %v", s, x.files())
	}
}

// Writing for real onto a directory that cannot be written to.
func TestUnwritableDirectory(t *testing.T) {
	x := newRig(t, Config{})
	x.put("seg/a", 2*mib)
	x.ok(os.RemoveAll(x.cache.root))
	x.ok(os.WriteFile(x.cache.root, nil, 0o600)) // a file where the directory was
	x.same("seg/a", objstore.Whole)
	x.settled()
	x.same("seg/a", objstore.Whole)
	if s := x.cache.Stats(); s.WriteErrors == 0 || s.Bytes != 0 {
		t.Errorf("%+v", s)
	}
}

// The bound holds while readers fill and files go.
func TestBytesStayWithinTheBound(t *testing.T) {
	x := newRig(t, Config{})
	keys := []string{"seg/a", "seg/b", "seg/c", "seg/d", "seg/e"}
	for _, k := range keys {
		x.put(k, 17*mib+17)
	}
	x.put("seg/small", 100)
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if s := x.cache.Stats(); s.Bytes > x.cfg.Bytes {
				t.Errorf("%d bytes, the bound is %d", s.Bytes, x.cfg.Bytes)
				return
			}
		}
	})
	var readers sync.WaitGroup
	for i := range 3 {
		readers.Go(func() {
			for j := range len(keys) {
				x.same(keys[(i+j)%len(keys)], objstore.Whole)
				x.same("seg/small", objstore.Whole)
			}
		})
	}
	readers.Wait()
	close(stop)
	watch.Wait()
	x.settled()
	var disk int64
	for _, f := range x.files() {
		info, err := os.Stat(f)
		x.ok(err)
		disk += weightOf(info.Size())
	}
	s := x.cache.Stats()
	if disk != s.Bytes || disk > x.cfg.Bytes || s.Evictions == 0 || s.Bytes < x.cfg.Bytes/2 {
		t.Errorf("%d bytes in files; %+v", disk, s)
	}
}

// What is in files is not in memory.
func TestFilledBlocksLeaveMemory(t *testing.T) {
	x := newRig(t, Config{})
	x.put("seg/a", 40*mib)
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // the second empties pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc) //nolint:gosec // a test's heap
	}
	before := heap()
	rd, err := x.cache.Read(t.Context(), testBucket, "seg/a", objstore.Whole, "")
	x.ok(err)
	for p, err := rd.Next(t.Context()); p != nil; p, err = rd.Next(t.Context()) {
		x.ok(err)
	}
	rd.Close()
	x.settled()
	if grown := heap() - before; grown > 8*mib || x.cache.Stats().Blocks != 40 {
		t.Errorf("%d MiB more for 40 blocks in files", grown/mib)
	}
	runtime.KeepAlive(x)
}

func TestMaxAge(t *testing.T) {
	x := newRig(t, Config{MaxAge: time.Minute})
	x.put("seg/a", 2*mib)
	x.same("seg/a", objstore.Whole)
	x.settled()
	x.now.Add(int64(time.Minute))
	if n := x.asked(func() { x.same("seg/a", objstore.Whole) }); n != 0 {
		t.Errorf("%d GETs at max-age", n)
	}
	x.now.Add(1)
	if n := x.asked(func() { x.same("seg/a", objstore.Whole) }); n != 1 {
		t.Errorf("%d GETs past max-age", n)
	}
	x.settled()
	x.now.Add(-int64(time.Hour)) // the clock was set back
	if n := x.asked(func() { x.same("seg/a", objstore.Whole) }); n != 1 {
		t.Errorf("%d GETs for blocks of the future", n)
	}
	x.settled()
	if n := len(x.files()); n != 2 {
		t.Errorf("%d files", n)
	}
}

// Every byte of a file counts: whatever is changed, cut, added or moved, readers get
// the store's bytes and the file goes.
func TestPoisonedFiles(t *testing.T) {
	body := 3*mib + 77
	for name, spoil := range map[string]func(x *rig, path string, b []byte){
		"magic":       flip(0),
		"version":     flip(5),
		"length":      flip(8),
		"header crc":  flip(13),
		"bucket":      flip(headerFixed + 12),
		"description": flip(headerFixed + 60),
		"header end":  flip(-1 - mib),
		"first byte":  flip(-mib),
		"middle":      flip(-mib / 2),
		"last byte":   flip(-1),
		"cut":         func(x *rig, path string, b []byte) { x.ok(os.WriteFile(path, b[:len(b)-1], 0o600)) },
		"empty":       func(x *rig, path string, _ []byte) { x.ok(os.WriteFile(path, nil, 0o600)) },
		"longer":      func(x *rig, path string, b []byte) { x.ok(os.WriteFile(path, append(b, 0), 0o600)) },
		"gone":        func(x *rig, path string, _ []byte) { x.ok(os.Remove(path)) },
		"a directory": func(x *rig, path string, _ []byte) { x.ok(errors.Join(os.Remove(path), os.Mkdir(path, 0o700))) },
		"another's":   func(x *rig, path string, _ []byte) { x.ok(os.Rename(other(x, path), path)) },
	} {
		for _, restart := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " at a restart"}[restart], func(t *testing.T) {
				x := newRig(t, Config{})
				x.put("seg/a", body)
				x.same("seg/a", objstore.Whole)
				x.settled()
				path := x.cache.pathOf(t, "seg/a", 1)
				b, err := os.ReadFile(path)
				x.ok(err)
				spoil(x, path, b)
				if restart {
					x.reopen()
				}
				x.same("seg/a", objstore.Whole)
				x.settled()
				if n := x.asked(func() { x.same("seg/a", objstore.Whole) }); n != 0 {
					t.Errorf("%d GETs: what replaced the file is not there", n)
				}
				if now := x.cache.pathOf(t, "seg/a", 1); now == path {
					t.Error("the spoiled file is still in use")
				}
				if name != "a directory" {
					if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
						t.Errorf("the spoiled file stands: %v", err)
					}
				}
			})
		}
	}
}

// flip changes one byte; at counts from the end if it is negative.
func flip(at int) func(*rig, string, []byte) {
	return func(x *rig, path string, b []byte) {
		if at < 0 {
			at += len(b)
		}
		b[at] ^= 0x10
		x.ok(os.WriteFile(path, b, 0o600))
	}
}

func other(x *rig, not string) string {
	for _, f := range x.files() {
		if f != not {
			return f
		}
	}
	x.Fatal("no other file")
	return ""
}

func (c *Cache) pathOf(t *testing.T, key string, n int64) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.objects[id{testBucket, key}]
	if o == nil || o.blocks[n] == nil {
		t.Fatalf("block %d of %s is not in a file", n, key)
	}
	return filepath.Join(c.root, o.blocks[n].name())
}
