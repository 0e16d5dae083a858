package instance

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// On a disk with less room than the bound, new blocks take the place of old ones.
func TestSmallDisk(t *testing.T) {
	const disk = 40 * mib
	x := newRig(t, Config{Bytes: 64 * mib})
	x.cache.write = func(path string, header, content []byte) error {
		var have int64
		for _, name := range x.files() {
			if info, err := os.Stat(name); err == nil { // one that goes meanwhile takes no room
				have += info.Size()
			}
		}
		if have+int64(len(content)) > disk {
			return &os.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
		}
		return writeFile(path, header, content)
	}
	keyOf := func(i int) string { return fmt.Sprintf("seg/%03d", i) }
	for i := range 120 {
		x.put(keyOf(i), mib)
		x.same(keyOf(i), objstore.Whole)
		x.same(keyOf(i), objstore.Whole)
		x.settled()
	}
	s := x.cache.Stats()
	if s.WriteErrors == 0 || s.Max >= disk || s.Bytes > s.Max {
		t.Errorf("%+v: want the bound below the disk's %d", s, int64(disk))
	}
	if s.WriteErrors > 10 || s.Evictions == 0 {
		t.Errorf("%+v: want few writes to fail, and blocks to be evicted", s)
	}
	kept := 0
	for i := range 120 {
		if x.asked(func() { x.same(keyOf(i), objstore.Whole) }) == 0 {
			kept++
		}
	}
	if kept < 20 {
		t.Errorf("%d of the last reads were hits: want most of what the disk holds", kept)
	}
}
