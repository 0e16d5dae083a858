package coldload

import "testing"

// However many reads there are, together they hold no more than the total, but for a least
// share each.
func TestReadsShareTheMemory(t *testing.T) {
	r := &Reader{cfg: Config{MemoryBytes: 96 << 20, TotalBytes: 512 << 20}}
	var ends []func()
	for n := int64(1); n <= 1024; n++ {
		ends = append(ends, r.begin())
		if total := n * r.share(); total > max(512<<20, n*leastShare) {
			t.Fatalf("%d reads hold %d MiB ahead", n, total>>20)
		}
		if n <= 5 && r.share() != 96<<20 {
			t.Fatalf("%d reads: a share of %d MiB, though there is room", n, r.share()>>20)
		}
	}
	for _, end := range ends {
		end()
	}
	if r.share() != 96<<20 {
		t.Fatalf("alone again: %d MiB", r.share()>>20)
	}
}
