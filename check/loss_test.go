package check_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// notLost fails unless the proof is refused with that kind.
func notLost(t *testing.T, x *tiertest.Tier, key string, kind error) {
	t.Helper()
	if loss, err := check.ProveLoss(t.Context(), x.Catalog, x.Classes, key, "a"); !errors.Is(err, kind) || loss != nil {
		t.Fatalf("want %v: %+v, %v", kind, loss, err)
	}
}

// isLost fails unless the proof stands, with so many rows that can still be read.
func isLost(t *testing.T, x *tiertest.Tier, key string, rows, sound uint64) *check.Loss {
	t.Helper()
	loss, err := check.ProveLoss(t.Context(), x.Catalog, x.Classes, key, "a")
	if err != nil {
		t.Fatal(err)
	}
	if loss.Rows != rows || loss.SoundRows != sound {
		t.Fatalf("want %d rows, %d of them sound: %+v", rows, sound, *loss)
	}
	if want := 2 * len(x.Classes["standard"]) * len(loss.Spans); len(loss.Looks) != want {
		t.Fatalf("%d looks, want %d: twice at every bucket for every ref", len(loss.Looks), want)
	}
	return loss
}

// turn flips one bit of an object, behind everybody's back.
func turn(t *testing.T, mem *memstore.Driver, key string, at func(body []byte) int) {
	t.Helper()
	if !mem.Tamper(key, func(body []byte) []byte { return flip(body, at(body)) }) {
		t.Fatalf("no %s to turn a bit of", key)
	}
}

// ofRows is a byte of the first chunk that holds a stream's rows.
func ofRows(t *testing.T) func([]byte) int {
	return func(body []byte) int {
		for _, c := range chunksOf(t, body) {
			if c.Stream != "" {
				return int(c.Offset) + 3
			}
		}
		t.Fatal("no chunk has rows")
		return 0
	}
}

// TestLossOfSlots: of a set every bucket is asked, and one that has the rows whole, or does
// not answer, is enough to refuse.
func TestLossOfSlots(t *testing.T) {
	x, keys, _, second := twoBuckets(t)
	notLost(t, x, keys[0], check.ErrNotLost)
	turn(t, x.Mem, keys[0], ofRows(t))
	notLost(t, x, keys[0], check.ErrNotLost) // the copy has them
	turn(t, second, keys[0], ofRows(t))
	loss := isLost(t, x, keys[0], 10, 0)
	if s := loss.Spans[0]; len(loss.Spans) != 1 || s.First != 1 || s.Last != 10 || s.Epoch != 1 || s.MinTime == 0 || s.MaxTime != s.MinTime+9 {
		t.Errorf("%+v", loss.Spans)
	}
	if !strings.Contains(loss.Looks[0].Why, "chunk at byte") {
		t.Errorf("%+v", loss.Looks)
	}
	x.Delete(keys[0])
	if loss = isLost(t, x, keys[0], 10, 0); !strings.Contains(loss.Looks[0].Why, "not in the bucket") || !strings.Contains(loss.Looks[1].Why, "chunk at byte") {
		t.Errorf("%+v", loss.Looks)
	}
	// A footer that is broken does not hide rows which the ref leads to.
	turn(t, x.Mem, keys[1], func(body []byte) int { return len(body) - 1 })
	turn(t, second, keys[1], func(body []byte) int { return len(body) - 1 })
	notLost(t, x, keys[1], check.ErrNotLost)
	// The second bucket never had a copy of the third.
	x.Delete(keys[2])
	isLost(t, x, keys[2], 10, 0)
	notLost(t, x, segment.SlotKey(x.Chain, 9), catalog.ErrNotFound)
	if _, err := check.ProveLoss(t.Context(), x.Catalog, x.Classes, keys[2], "b"); !errors.Is(err, catalog.ErrNotFound) {
		t.Error(err)
	}
}

// settledTier has one stream object of a, of several chunks, and a pack that a and b share.
func settledTier(t *testing.T, wrap func(objstore.Driver) objstore.Driver) (x *tiertest.Tier, object, pack string) {
	t.Helper()
	x = tiertest.New(t, wrap)
	for range 6 {
		x.Slot(tiertest.Write{Stream: "a", Rows: 3, Size: 2 << 20})
	}
	x.Settle(1)
	x.Slot(tiertest.Write{Stream: "a", Rows: 5, Size: 40}, tiertest.Write{Stream: "b", Rows: 5, Size: 40})
	x.Settle(1 << 20)
	return x, x.Keys(segment.KeyStream)[0], x.Keys(segment.KeyPack)[0]
}

// TestLossOfSettled: damage of one chunk leaves the others, which are told.
func TestLossOfSettled(t *testing.T) {
	x, object, pack := settledTier(t, nil)
	chunks := chunksOf(t, x.Mem.Dump()[object])
	if len(chunks) < 3 {
		t.Fatalf("%d chunks: nothing lies beside the damage", len(chunks))
	}
	notLost(t, x, object, check.ErrNotLost)
	notLost(t, x, pack, check.ErrNotLost)
	turn(t, x.Mem, object, func([]byte) int { return int(chunks[1].Offset) + 9 })
	loss := isLost(t, x, object, 18, 18-chunks[1].Rows)
	sound := loss.Spans[0].Sound
	if len(sound) != len(chunks)-1 || sound[0] != (check.SoundRows{First: chunks[0].First, Last: chunks[0].Last, Rows: chunks[0].Rows}) {
		t.Errorf("%+v, chunks %+v", sound, chunks)
	}
	notLost(t, x, pack, check.ErrNotLost)
	// Of the pack just b's chunk is damaged: a's rows are whole.
	var of []segment.Chunk
	for _, c := range chunksOf(t, x.Mem.Dump()[pack]) {
		if c.Stream == "b" {
			of = append(of, c)
		}
	}
	turn(t, x.Mem, pack, func([]byte) int { return int(of[0].Offset) + 3 })
	notLost(t, x, pack, check.ErrNotLost)
	if loss, err := check.ProveLoss(t.Context(), x.Catalog, x.Classes, pack, "b"); err != nil || loss.Rows != 5 {
		t.Fatalf("%+v, %v", loss, err)
	}
	// Rows below live_from are given up already: nobody asks for them.
	if _, err := x.Catalog.TrimStream(t.Context(), "a", segment.Pos{Epoch: 1, Seq: chunks[2].First}); err != nil {
		t.Fatal(err)
	}
	notLost(t, x, object, check.ErrNotLost)
	turn(t, x.Mem, object, func([]byte) int { return int(chunks[2].Offset) + 9 })
	if loss := isLost(t, x, object, 18, 18-chunks[0].Rows-chunks[1].Rows-chunks[2].Rows); loss.Spans[0].First != chunks[2].First {
		t.Errorf("%+v", loss.Spans)
	}
	// A footer that nobody can read: a stream object's chunks are not found without it.
	x2, object, _ := settledTier(t, nil)
	turn(t, x2.Mem, object, func(body []byte) int { return len(body) - 1 })
	if loss := isLost(t, x2, object, 18, 0); !strings.Contains(loss.Looks[0].Why, "its footer") {
		t.Errorf("%+v", loss.Looks)
	}
}

// TestLossOfChunksApart: two buckets that have a different half of an object each have all
// of it together, as readers see it.
func TestLossOfChunksApart(t *testing.T) {
	x, object, _ := settledTier(t, nil)
	mem := memstore.New(memstore.Options{Clock: x.Clock.Now})
	second, err := objstore.New(mem, objstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	x.Classes["standard"] = append(x.Classes["standard"], second)
	put(t, second, object, x.Mem.Dump()[object])
	chunks := chunksOf(t, x.Mem.Dump()[object])
	turn(t, x.Mem, object, func([]byte) int { return int(chunks[0].Offset) + 9 })
	turn(t, mem, object, func([]byte) int { return int(chunks[1].Offset) + 9 })
	notLost(t, x, object, check.ErrNotLost)
	turn(t, mem, object, func([]byte) int { return int(chunks[0].Offset) + 9 })
	isLost(t, x, object, 18, 18-chunks[0].Rows)
}

// TestLossUnproven: no call that fails or comes short, whichever it is, ends in a proof,
// neither of a sound object nor of a damaged one; nor does one bad moment of a disk.
func TestLossUnproven(t *testing.T) {
	var fate func() faultstore.Fault
	tier, object, _ := settledTier(t, func(d objstore.Driver) objstore.Driver {
		return faultstore.Wrap(d, func(c faultstore.Call) faultstore.Fault {
			if fate == nil || c.Op != objstore.OpGet {
				return faultstore.Fault{}
			}
			return fate()
		})
	})
	// each hits every call of a proof in turn, alone or (forGood) with all that follow it:
	// longer than the store's own tries.
	each := func(what string, fault faultstore.Fault, forGood bool, want error) {
		t.Helper()
		for nth := 1; ; nth++ {
			calls, hit := 0, false
			fate = func() faultstore.Fault {
				if calls++; calls == nth || forGood && calls > nth {
					hit = true
					return fault
				}
				return faultstore.Fault{}
			}
			loss, err := check.ProveLoss(t.Context(), tier.Catalog, tier.Classes, object, "a")
			switch {
			case hit && (loss != nil || !errors.Is(err, want)):
				t.Fatalf("%s at call %d: %+v, %v", what, nth, loss, err)
			case !hit && nth <= 4:
				t.Fatalf("%s: %d calls were hit, a proof reads a footer and three chunks at least", what, nth-1)
			case !hit:
				return
			}
		}
	}
	away, short := faultstore.Fault{Kind: faultstore.NotApplied}, faultstore.Fault{Kind: faultstore.ShortBody, Keep: 5}
	each("away", away, true, objstore.ErrUnavailable)
	each("short", short, true, objstore.ErrShort)
	each("one bad moment", faultstore.Fault{Kind: faultstore.WrongBytes}, false, check.ErrNotLost)
	at := chunksOf(t, tier.Mem.Dump()[object])[0].Offset
	turn(t, tier.Mem, object, func([]byte) int { return int(at) + 9 })
	each("away, and damaged", away, true, objstore.ErrUnavailable)
	each("short, and damaged", short, true, objstore.ErrShort)
	each("denied, and damaged", faultstore.Fault{Kind: faultstore.NotApplied, Err: objstore.ErrDenied}, false, objstore.ErrDenied)
}

// TestLossChanged: what was proven is what is given up.
func TestLossChanged(t *testing.T) {
	x, object, _ := settledTier(t, nil)
	x.Delete(object)
	isLost(t, x, object, 18, 0)
	moving := &movingRefs{Catalog: x.Catalog}
	if loss, err := check.ProveLoss(t.Context(), moving, x.Classes, object, "a"); !errors.Is(err, catalog.ErrConflict) || loss != nil {
		t.Fatalf("%+v, %v", loss, err)
	}
}

// movingRefs shortens every ref at the second look.
type movingRefs struct {
	check.Catalog
	looks int
}

func (m *movingRefs) Liveness(ctx context.Context, key string) ([]catalog.LiveRef, error) {
	refs, err := m.Catalog.Liveness(ctx, key)
	if m.looks++; m.looks > 1 {
		for i := range refs {
			refs[i].Last--
		}
	}
	return refs, err
}
