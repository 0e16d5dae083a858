package localtier

import (
	"testing"
	"time"
)

// TestFreeDiskNearTheMargin: an answer is kept while there is plenty only. Near the margin a
// second of appends would pass it.
func TestFreeDiskNearTheMargin(t *testing.T) {
	now := time.Unix(1, 0)
	d := freeDisk{dir: t.TempDir(), least: 1, now: func() time.Time { return now }}
	first, err := d.left()
	if err != nil || first < plenty {
		t.Fatalf("%d free: %v", first, err)
	}
	const made = 1 << 50 // what nobody has free
	d.last.Store(&freeAnswer{at: now, free: made})
	if left, err := d.left(); err != nil || left != made {
		t.Errorf("asked again with plenty: %d, %v", left, err)
	}
	d.least = made/plenty + 1
	if left, err := d.left(); err != nil || left == made {
		t.Errorf("not asked again near the margin: %d, %v", left, err)
	}
	d.least, now = 1, now.Add(askEvery)
	d.last.Store(&freeAnswer{at: now.Add(-askEvery), free: made})
	if left, err := d.left(); err != nil || left == made {
		t.Errorf("an old answer is believed: %d, %v", left, err)
	}
}
