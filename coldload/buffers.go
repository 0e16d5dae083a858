package coldload

import (
	"math/bits"
	"sync"
)

// Buffers are made in sizes of powers of two, so that one serves for any range or chunk of
// about its size: from what a small chunk needs to the largest raw one.
const (
	leastBufferBits = 12 // 4 KiB
	mostBufferBits  = 26 // 64 MiB, segment.ChunkRawMax
)

// buffers lend memory to a read's GETs and decompressions, and take it back once its rows
// are delivered. Fresh megabytes cost as much as reading them: the system clears each page,
// and the collector runs for them. What lies idle goes when the room is needed for another
// size. Safe for concurrent use.
type buffers struct {
	mu   sync.Mutex // all below
	idle [mostBufferBits + 1][][]byte
	held int64 // bytes that are lent or idle
}

// bufferBits is the size of the buffer that n bytes are lent from.
func bufferBits(n int64) int { return max(leastBufferBits, bits.Len64(uint64(max(n, 1)-1))) }

// bufferBytes is what n bytes cost.
func bufferBytes(n int64) int64 { return 1 << bufferBits(n) }

// begin forgets the buffers that an abandoned pipeline did not give back: who filled them has
// ended, and nobody will.
func (l *buffers) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = 0
	for size, list := range l.idle {
		l.held += int64(len(list)) << size
	}
}

// lend gives n bytes of any content. Who borrows has acquired bufferBytes(n) of room.
func (l *buffers) lend(n, room int64) []byte {
	size := bufferBits(n)
	if size > mostBufferBits {
		return make([]byte, n)
	}
	if b := l.take(size, room); b != nil {
		return b[:n]
	}
	return make([]byte, n, 1<<size)
}

// take is an idle buffer of the size, or nil if one is to be made.
func (l *buffers) take(size int, room int64) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.pop(size); b != nil {
		return b
	}
	l.held += 1 << size
	for other := mostBufferBits; l.held > room && other >= leastBufferBits; other-- {
		for l.held > room && l.pop(other) != nil {
			l.held -= 1 << other
		}
	}
	return nil
}

// pop takes an idle buffer out of the list, nil if there is none.
func (l *buffers) pop(size int) []byte {
	last := len(l.idle[size]) - 1
	if last < 0 {
		return nil
	}
	b := l.idle[size][last]
	l.idle[size][last] = nil // the list must not keep it from the collector
	l.idle[size] = l.idle[size][:last]
	return b
}

// back takes lent buffers, of which nobody holds a part any more.
func (l *buffers) back(lent ...[]byte) {
	for _, b := range lent {
		size := bufferBits(int64(cap(b)))
		if size > mostBufferBits {
			continue
		}
		b = b[:cap(b)]
		spoil(b)
		l.mu.Lock()
		l.idle[size] = append(l.idle[size], b)
		l.mu.Unlock()
	}
}
