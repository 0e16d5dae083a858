package coldload

import (
	"testing"
	"time"

	"github.com/strandline/strandline/segment"
)

// TestFootersOfOneAge: of footers that expire at once the same one makes room, whatever
// order a map has.
func TestFootersOfOneAge(t *testing.T) {
	at := time.Unix(1000, 0)
	for range 50 {
		c := newFooterCache(3)
		for _, key := range []string{"c", "a", "d", "b"} {
			c.put(key, &segment.Footer{}, at)
		}
		if _, ok := c.get("a", at.Add(-time.Second)); ok || len(c.held) != 3 {
			t.Fatalf("%d footers are held, a among them: %t", len(c.held), ok)
		}
	}
}
