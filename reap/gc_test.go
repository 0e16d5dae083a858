package reap_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/internal/audittest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/reap"
	"github.com/strandline/strandline/segment"
)

// sparse claims that key is a large object of zeros that ends in tail.
type sparse struct {
	objstore.Driver
	key  string
	tail []byte
	size int64
}

func (s *sparse) Get(ctx context.Context, key string, r objstore.Range, ifMatch string) (io.ReadCloser, objstore.Info, error) {
	if key != s.key {
		return s.Driver.Get(ctx, key, r, ifMatch)
	}
	body := make([]byte, -r.Offset)
	copy(body[len(body)-len(s.tail):], s.tail)
	return io.NopCloser(bytes.NewReader(body)), objstore.Info{Key: key, Size: s.size, ETag: "sparse"}, nil
}

// halfDead is a stream object of 120 MiB of rows 1 to 10 and 60 MiB of 11 to 15,
// of which the first are trimmed, with its reap-check due.
func halfDead(t *testing.T) (*audittest.Tier, *sparse) {
	t.Helper()
	x := settled(t, "s")
	var buf bytes.Buffer
	o := segment.NewObjectWriter(&buf, &segment.Footer{Kind: segment.ObjStream, Object: uuid.New(), Created: 1, Writer: "test"})
	const size = 60 << 20
	for first := segment.Seq(1); first < 16; first += 5 {
		x.Must(o.AddCopied(segment.Chunk{Stream: "s", Epoch: 1, First: first, Last: first + 4, Rows: 5, Stored: size, Raw: size}))
	}
	_, err := o.Finish()
	x.Must(err)
	_, err = x.DB.TrimStream(t.Context(), "s", segment.Pos{Epoch: 1, Seq: 11})
	x.Must(err)
	for _, res := range plain(x).walkOnce() {
		x.Must(res.Err)
	}
	x.Clock.Advance(audittest.ReadGrace)
	return x, &sparse{Driver: x.Mem, key: x.Settled()[0], tail: buf.Bytes(), size: 180<<20 + int64(buf.Len())}
}

func TestGCWorthyArmsGCAndResolves(t *testing.T) {
	x, driver := halfDead(t)
	if got := roomsOn(x, x.Open(driver), x.DB).outcome(); got != reap.ArmedGC {
		t.Fatalf("%s, want gc-worthy", got)
	}
	if gc, rc := x.Markers(catalog.DutyGC), x.Markers(catalog.DutyReapCheck); len(gc) != 1 || gc[0].ID != driver.key || gc[0].Class != segment.ClassStandard || len(rc) != 0 {
		t.Fatalf("gc %+v, reap-check %+v", gc, rc)
	}
}

// Crash table: "arming, before the marker resolves".
func TestDuplicateArmCollapses(t *testing.T) {
	x, driver := halfDead(t)
	f := &audittest.Faults{Pick: audittest.Cut(1, func(c string) bool { return c == "Arm" })}
	f.Start()
	roomsOn(x, x.Open(driver), f.Catalog(x)).reapOnce()
	f.Heal()
	if f.Hit() == "" || len(x.Markers(catalog.DutyGC)) != 1 || len(x.Markers(catalog.DutyReapCheck)) != 1 {
		t.Fatal("the cut was not between arm and resolve")
	}
	x.Clock.Advance(time.Minute)
	if got := roomsOn(x, x.Open(driver), x.DB).outcome(); got != reap.ArmedGC {
		t.Fatalf("%s, want gc-worthy", got)
	}
	if gc, rc := x.Markers(catalog.DutyGC), x.Markers(catalog.DutyReapCheck); len(gc) != 1 || len(rc) != 0 {
		t.Fatalf("gc %+v, reap-check %+v", gc, rc)
	}
}
