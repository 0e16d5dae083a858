package powercut

import "slices"

const (
	pageBytes   = 4096
	sectorBytes = 512
)

// page is what the page cache and the disk move as one. A page is never written
// once it stands somewhere: a write puts a new one in its place, so boots,
// versions and the disk share what is the same, and a file of zeros costs no
// memory.
type page [pageBytes]byte

// content is a file's bytes. A page that is nil or missing is zeros, and so is
// what a page holds behind size.
type content struct {
	pages []*page
	size  int64
}

func pagesIn(size int64) int { return int((size + pageBytes - 1) / pageBytes) }

func contentOf(b []byte) content {
	var c content
	c.write(b, 0, func(int, *page) {})
	return c
}

func (c content) clone() content { return content{slices.Clone(c.pages), c.size} }

func (c content) bytes() []byte {
	b := make([]byte, c.size)
	c.read(b, 0)
	return b
}

// read copies what stands from off on; all of p lies within size.
func (c content) read(p []byte, off int64) {
	for len(p) > 0 {
		in := off % pageBytes
		n := min(len(p), int(pageBytes-in))
		if at := c.at(int(off / pageBytes)); at != nil {
			copy(p[:n], at[in:])
		} else {
			clear(p[:n])
		}
		p, off = p[n:], off+int64(n)
	}
}

func (c content) at(n int) *page {
	if n < len(c.pages) {
		return c.pages[n]
	}
	return nil
}

// put sets a page, whatever the size is.
func (c *content) put(n int, p *page) {
	if n >= len(c.pages) {
		if p == nil {
			return
		}
		c.pages = append(c.pages, make([]*page, n+1-len(c.pages))...)
	}
	c.pages[n] = p
}

// write puts p at off and tells replaced each page and what stood there before.
func (c *content) write(p []byte, off int64, replaced func(n int, old *page)) {
	c.size = max(c.size, off+int64(len(p)))
	for len(p) > 0 {
		n, in := int(off/pageBytes), off%pageBytes
		part := p[:min(len(p), int(pageBytes-in))]
		old := c.at(n)
		replaced(n, old)
		if old != nil || !allZero(part) {
			var next page
			if old != nil {
				next = *old
			}
			copy(next[in:], part)
			c.put(n, &next)
		}
		p, off = p[len(part):], off+int64(len(part))
	}
}

// shorten cuts at size and tells replaced each page that went or lost its end.
func (c *content) shorten(size int64, replaced func(n int, old *page)) {
	c.size = size
	for n := int(size / pageBytes); n < len(c.pages); n++ {
		old := c.pages[n]
		if old == nil {
			continue
		}
		replaced(n, old)
		c.pages[n] = nil
		if in := size - int64(n)*pageBytes; in > 0 {
			next := *old
			clear(next[in:])
			c.pages[n] = &next
		}
	}
	c.pages = c.pages[:min(len(c.pages), pagesIn(size))]
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
