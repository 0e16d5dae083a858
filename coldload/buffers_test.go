package coldload

import (
	"math/rand/v2"
	"testing"
)

// idleBytes is what lies idle, counted.
func (l *buffers) idleBytes() (n int64) {
	for size, list := range l.idle {
		n += int64(len(list)) << size
	}
	return n
}

func TestBuffersAreUsedAgain(t *testing.T) {
	var l buffers
	const room = 1 << 20
	a := l.lend(5000, room)
	if len(a) != 5000 || cap(a) != 8192 {
		t.Fatalf("%d bytes of %d", len(a), cap(a))
	}
	l.back(a)
	if b := l.lend(8000, room); &b[0] != &a[0] {
		t.Error("a buffer of the size lies idle, and another was made")
	}
	l.lend(5000, room) // never given back
	l.begin()
	if l.held != 0 {
		t.Errorf("%d bytes held, and none of them by anybody", l.held)
	}
	if huge := l.lend(1<<mostBufferBits+1, room); len(huge) != 1<<mostBufferBits+1 {
		t.Errorf("%d bytes", len(huge))
	}
}

// TestBuffersKeepToTheRoom: whatever sizes come, what is lent and what lies idle stay within
// the room that borrowers have acquired parts of.
func TestBuffersKeepToTheRoom(t *testing.T) {
	var l buffers
	const room = 1 << 20
	rng := rand.New(rand.NewPCG(1, 2))
	var lent [][]byte
	held, reused := int64(0), 0
	for range 10_000 {
		n := rng.Int64N(1 << (8 + rng.IntN(10)))
		if held+bufferBytes(n) > room || rng.IntN(3) == 0 {
			for _, b := range lent {
				held -= int64(cap(b))
			}
			l.back(lent...)
			lent = lent[:0]
			continue
		}
		before := l.idleBytes()
		b := l.lend(n, room)
		if l.idleBytes() < before && l.held+int64(cap(b)) <= room {
			reused++
		}
		lent, held = append(lent, b), held+int64(cap(b))
		if idle := l.idleBytes(); held+idle > room || l.held != held+idle {
			t.Fatalf("%d bytes lent and %d idle in a room of %d; counted %d", held, idle, room, l.held)
		}
	}
	if reused == 0 {
		t.Error("no buffer was used again")
	}
}
