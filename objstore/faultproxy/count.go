package faultproxy

import (
	"maps"

	"github.com/strandline/strandline/objstore"
)

// Counts are the requests that came in, by operation. An http.Transport repeats a
// read on its own when a kept connection breaks under it, so that there may be more
// reads here than the Store counted.
func (p *Proxy) Counts() map[objstore.Op]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Total is the sum of Counts.
func (p *Proxy) Total() int {
	n := 0
	for _, c := range p.Counts() {
		n += c
	}
	return n
}
