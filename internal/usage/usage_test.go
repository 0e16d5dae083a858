package usage

import (
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestWatch: what was held and is gone again is seen, and what stood before is not counted.
func TestWatch(t *testing.T) {
	const size = 64 << 20
	before := make([]byte, size)
	for _, watched := range []struct {
		name  string
		begin func() func() int64
	}{{"heap", WatchHeap}, {"resident", WatchResident}} { // the race detector's memory of the first is there for the second
		name := watched.name
		if name == "resident" && resident() == 0 {
			t.Log("this system does not tell what is resident")
			continue
		}
		runtime.GC() // what the one before held is garbage, and counts as long as it is there
		peak := watched.begin()
		held := make([]byte, size)
		for i := range held {
			held[i] = 1
		}
		looked := resident() // long enough after the last byte for one look
		runtime.KeepAlive(held)
		got := peak()
		if got < size*9/10 || got > size*2 {
			t.Errorf("%s: peak of %d bytes, held %d (resident %d)", name, got, size, looked)
		}
	}
	runtime.KeepAlive(before)
}

// TestCPU: work is counted.
func TestCPU(t *testing.T) {
	before, ok := CPU()
	if !ok {
		t.Log("this system does not tell")
		return
	}
	n := 0
	for i := range 100_000_000 {
		n += i % 7
	}
	runtime.KeepAlive(n)
	if after, _ := CPU(); after <= before {
		t.Errorf("%v, then %v", before, after)
	}
}
