package coldload

import (
	"sync"
	"time"

	"github.com/strandline/strandline/segment"
)

// footerCache keeps a few footers for as long as a plan naming them may be relied
// on. It belongs to one Reader and is safe for concurrent use.
type footerCache struct {
	mu    sync.Mutex
	limit int
	held  map[string]heldFooter
}

type heldFooter struct {
	footer  *segment.Footer
	expires time.Time
}

func newFooterCache(limit int) *footerCache {
	return &footerCache{limit: limit, held: make(map[string]heldFooter, limit)}
}

func (c *footerCache) get(key string, now time.Time) (*segment.Footer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.held[key]
	if !ok || !now.Before(h.expires) {
		delete(c.held, key)
		return nil, false
	}
	return h.footer, true
}

// put makes room by dropping whatever expires first, by key among those that expire at
// once: the same reads keep the same footers.
func (c *footerCache) put(key string, f *segment.Footer, expires time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) >= c.limit {
		oldest := ""
		for k, h := range c.held {
			if by := h.expires.Compare(c.held[oldest].expires); oldest == "" || by < 0 || by == 0 && k < oldest {
				oldest = k
			}
		}
		delete(c.held, oldest)
	}
	c.held[key] = heldFooter{footer: f, expires: expires}
}
