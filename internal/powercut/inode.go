package powercut

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// versionsMax bounds how many earlier versions of a page or of a length are
// remembered: the last ones are what a write-back most likely met.
const versionsMax = 4

// inode is a file: what programs read, what the disk surely has, and what it may
// have of the rest.
type inode struct {
	seen    content
	disk    content
	dirty   map[int]bool    // pages that a Sync would bring from seen to disk
	early   map[int][]*page // versions that the kernel may have written back unasked
	sizes   []int64         // lengths since the last Sync, the present one not
	modTime time.Time
}

func newInode() *inode {
	return &inode{dirty: map[int]bool{}, early: map[int][]*page{}, modTime: now()}
}

func onDisk(b []byte) *inode {
	i := newInode()
	i.seen = contentOf(b)
	i.disk = i.seen.clone()
	return i
}

// replaced notes that page n of seen gets a new version: the kernel may have
// written the old one back a moment ago.
func (i *inode) replaced(n int, old *page) {
	if i.dirty[n] {
		i.remember(n, old)
	}
	i.dirty[n] = true
}

func (i *inode) remember(n int, p *page) {
	v := append(i.early[n], p)
	i.early[n] = v[max(0, len(v)-versionsMax):]
}

func (i *inode) resizing() {
	v := append(i.sizes, i.seen.size)
	i.sizes = v[max(0, len(v)-versionsMax):]
}

func (i *inode) write(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	if off+int64(len(p)) > i.seen.size {
		i.resizing()
	}
	i.seen.write(p, off, i.replaced)
	i.modTime = now()
}

func (i *inode) truncate(size int64) {
	i.resizing()
	if size >= i.seen.size {
		i.seen.size = size
		return
	}
	i.seen.shorten(size, i.replaced)
}

// synced brings everything to the disk. What a failed Sync dropped is clean by
// now, so it stays where it is: maybe written, maybe not.
func (i *inode) synced() {
	i.disk.size = i.seen.size
	for n := range i.dirty {
		i.disk.put(n, i.seen.at(n))
		delete(i.early, n)
	}
	i.disk.pages = i.disk.pages[:min(len(i.disk.pages), pagesIn(i.disk.size))]
	maps.DeleteFunc(i.early, func(n int, _ []*page) bool { return n >= pagesIn(i.disk.size) })
	clear(i.dirty)
	i.sizes = nil
}

// lost is a Sync that failed: it wrote any part of the pages, and the kernel
// calls all of them clean.
func (i *inode) lost() {
	for n := range i.dirty {
		i.remember(n, i.seen.at(n))
	}
	i.resizing()
	clear(i.dirty)
}

// after is the file that the next boot finds.
func (i *inode) after(seed uint64, rng *rand.Rand) *inode {
	out := newInode()
	out.modTime = i.modTime
	out.seen = i.disk.clone()
	if seed != 0 {
		i.spill(&out.seen, rng)
	}
	out.seen.shorten(out.seen.size, func(int, *page) {})
	out.disk = out.seen.clone()
	return out
}

// spill brings a random part of the unsynced pages to the disk, in any of the
// versions that they had, and maybe the unsynced length.
func (i *inode) spill(to *content, rng *rand.Rand) {
	chance := rng.IntN(5) // from none to all of the pages
	pages := maps.Clone(i.dirty)
	for n := range i.early {
		pages[n] = true
	}
	longest := max(i.disk.size, i.seen.size, slices.Max(append(i.sizes, 0)))
	for _, n := range slices.Sorted(maps.Keys(pages)) {
		if rng.IntN(4) >= chance {
			continue
		}
		end := min(int64(n+1)*pageBytes, longest)
		p := i.version(n, rng)
		if rng.IntN(8) == 0 {
			p = tear(to.at(n), p, rng)
		}
		if end <= int64(n)*pageBytes {
			continue
		}
		to.put(n, p)
		to.size = max(to.size, end)
	}
	if rng.IntN(2) == 0 {
		all := append(slices.Clone(i.sizes), i.seen.size, i.seen.size, i.seen.size)
		to.size = all[rng.IntN(len(all))]
	}
}

// version is what of page n was written back: mostly the newest.
func (i *inode) version(n int, rng *rand.Rand) *page {
	v := slices.Clone(i.early[n])
	if i.dirty[n] {
		v = append(v, i.seen.at(n))
	}
	if rng.IntN(3) > 0 {
		return v[len(v)-1]
	}
	return v[rng.IntN(len(v))]
}

// tear is a page of which only some sectors were written: the first ones, or any.
func tear(old, written *page, rng *rand.Rand) *page {
	var out page
	if old != nil {
		out = *old
	}
	if written == nil {
		written = &page{}
	}
	upTo, any := rng.IntN(pageBytes/sectorBytes)+1, rng.IntN(2) == 0
	for s := range pageBytes / sectorBytes {
		if any && rng.IntN(2) == 0 || !any && s < upTo {
			copy(out[s*sectorBytes:(s+1)*sectorBytes], written[s*sectorBytes:])
		}
	}
	return &out
}
