package check_test

import (
	"bytes"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/check"
	"github.com/strandline/strandline/internal/tiertest"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// flip turns one bit.
func flip(body []byte, at int) []byte {
	body = bytes.Clone(body)
	body[at] ^= 0x10
	return body
}

// deep walks with every chunk read, alone and several objects at once, which must agree.
func deep(t *testing.T, x *tiertest.Tier) *check.Report {
	t.Helper()
	return walk(t, x, x.Catalog, check.Config{Deep: true})
}

func walk(t *testing.T, x *tiertest.Tier, cat check.Catalog, cfg check.Config) *check.Report {
	t.Helper()
	one, err := check.Fsck(t.Context(), cat, x.Classes, cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Concurrency = 8
	many, err := check.Fsck(t.Context(), cat, x.Classes, cfg)
	if err != nil || many.Verdict != one.Verdict || many.DamageTotal != one.DamageTotal || many.RottenTotal != one.RottenTotal || many.Chunks != one.Chunks {
		t.Fatalf("alone\n%+v\nat once\n%+v %v", *one, *many, err)
	}
	return one
}

// chunksOf is an object's table.
func chunksOf(t *testing.T, body []byte) []segment.Chunk {
	t.Helper()
	f, _, err := segment.OpenTail(body, int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	return f.Chunks
}

func replace(x *tiertest.Tier, key string, body []byte) {
	x.T.Helper()
	x.Delete(key)
	x.Put(key, body)
}

// TestDeep: every byte of every chunk of every kind of object is looked at. A turned bit is
// damage of just the rows of its chunk, and no walk of footers sees it.
func TestDeep(t *testing.T) {
	for name, least := range map[string]int64{"slots": -1, "stream objects": 1, "packs": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			x := tier(t)
			if least > 0 {
				x.Settle(least)
				x.TrimSlots()
			}
			r := deep(t, x)
			if r.Verdict != check.Clean || r.Chunks < int64(len(names)) || r.ChunkBytes == 0 {
				t.Fatalf("%+v", *r)
			}
			key := x.Keys(segment.KeySlot)
			if least > 0 {
				key = append(x.Keys(segment.KeyStream), x.Keys(segment.KeyPack)...)
			}
			hits := 0
			for _, key := range key {
				body := read(x, key)
				for _, c := range chunksOf(t, body) {
					for _, at := range []int64{c.Offset, c.Offset + c.Stored/2, c.End() - 1} {
						replace(x, key, flip(body, int(at)))
						if r := must(t, x); r.Verdict != check.Clean {
							t.Fatalf("footers alone: %+v", *r)
						}
						r := deep(t, x)
						hits++
						if c.Stream == "" { // no row's
							if r.Verdict != check.Rotten || r.RottenTotal != 1 || r.Rotten[0].Key != key || r.DamageTotal != 0 {
								t.Fatalf("%+v", *r)
							}
							continue
						}
						damaged(t, r, check.DamageItem{Stream: c.Stream, First: c.First, Last: c.Last, Key: key, Why: "chunk at byte"})
					}
					replace(x, key, body)
				}
			}
			if hits < 3*len(names) {
				t.Fatalf("only %d flips", hits)
			}
		})
	}
}

// TestDeepPartial: of a ref that is a part of a chunk only a deep walk can tell that its
// rows are not those it says.
func TestDeepPartial(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	rows := x.Rows["z z"]
	from := func(at int, sum uint64) *skewed {
		return &skewed{Catalog: x.Catalog, ref: func(r *catalog.Ref) {
			r.First, r.Rows, r.RowSum = rows[at].Seq, uint64(len(rows)-at), sum
			for _, row := range rows[at:] {
				r.RowSum += segment.RowSum(row)
			}
		}}
	}
	if r := walk(t, x, from(3, 0), check.Config{Deep: true}); r.Verdict != check.Clean {
		t.Fatalf("%+v", *r)
	}
	if r := walk(t, x, from(3, 1), check.Config{}); r.Verdict != check.Clean {
		t.Fatalf("footers cannot tell: %+v", *r)
	}
	r := walk(t, x, from(3, 1), check.Config{Deep: true})
	damaged(t, r, check.DamageItem{Stream: "z z", First: rows[3].Seq, Last: rows[len(rows)-1].Seq, Key: segment.StreamKey("z z", 1, rows[0].Seq, 0), Why: "it holds 5 rows"})
	// Below live_from the object need not have what the ref says.
	if _, err := x.Catalog.TrimStream(t.Context(), "z z", segment.Pos{Epoch: 1, Seq: rows[4].Seq}); err != nil {
		t.Fatal(err)
	}
	if r := walk(t, x, from(3, 1), check.Config{Deep: true}); r.Verdict != check.Clean {
		t.Fatalf("%+v", *r)
	}
}

// TestDeepTrimmed: a rotten byte of rows that were given up is nobody's loss, and one of
// rows that straddle is damage from live_from on.
func TestDeepTrimmed(t *testing.T) {
	x := tier(t)
	want := span(x, "a", "chunk at byte")
	x.Settle(1)
	body := read(x, want.Key)
	replace(x, want.Key, flip(body, 10))
	want.First = x.Rows["a"][6].Seq
	trim := func(pos segment.Seq) {
		if _, err := x.Catalog.TrimStream(t.Context(), "a", segment.Pos{Epoch: 1, Seq: pos}); err != nil {
			t.Fatal(err)
		}
	}
	trim(want.First)
	damaged(t, deep(t, x), want)
	before := deep(t, x)
	trim(want.Last + 1)
	if r := deep(t, x); r.Verdict != check.Clean || r.Chunks >= before.Chunks {
		t.Fatalf("%+v", *r) // what nobody needs is not read
	}
}

// TestDeepOneBadRead: bytes that are wrong once were a bad moment, and are no verdict.
func TestDeepOneBadRead(t *testing.T) {
	hits := 0
	for i := 1; ; i++ {
		on, n, hit := false, 0, false
		x := tierOn(t, memstore.Options{}, func(d objstore.Driver) objstore.Driver {
			return faultstore.Wrap(d, func(c faultstore.Call) faultstore.Fault {
				if !on || c.Op != objstore.OpGet {
					return faultstore.Fault{}
				}
				if n++; n != i {
					return faultstore.Fault{}
				}
				hit = true
				return faultstore.Fault{Kind: faultstore.WrongBytes}
			})
		})
		x.Settle(1 << 20)
		on = true
		r, err := check.Fsck(t.Context(), x.Catalog, x.Classes, check.Config{Deep: true})
		if err != nil || r.Verdict != check.Clean {
			t.Fatalf("GET %d: %+v %v", i, r, err)
		}
		if !hit {
			break
		}
		hits++
	}
	if hits < 4 {
		t.Fatalf("%d hits", hits)
	}
}

// TestSample: which objects are left out does not depend on the walk, and one that is not
// there is found all the same.
func TestSample(t *testing.T) {
	x := tier(t)
	x.Settle(1)
	x.TrimSlots()
	objects := int64(len(names))
	r := walk(t, x, x.Catalog, check.Config{Sample: -1})
	if r.Verdict != check.Clean || r.Footers != 0 || r.Skipped != objects {
		t.Fatalf("none: %+v", *r)
	}
	r = walk(t, x, x.Catalog, check.Config{Sample: 2})
	if r.Verdict != check.Clean || r.Footers == 0 || r.Skipped == 0 || r.Footers+r.Skipped != objects {
		t.Fatalf("some: %+v", *r)
	}
	want := span(x, "a", "not in the bucket")
	x.Delete(want.Key)
	damaged(t, walk(t, x, x.Catalog, check.Config{Sample: -1}), want)
}
