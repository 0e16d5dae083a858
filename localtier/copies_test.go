package localtier

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/segment"
)

// pair is a world whose slots go to two buckets; each may be away.
type pair struct {
	*world
	second               *memstore.Driver
	firstAway, otherAway atomic.Bool
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{second: memstore.New(memstore.Options{Shuffle: 9, DirectoryPrefix: true})}
	p.world = newWorldOn(t, 1, func(d objstore.Driver) objstore.Driver { return awayWhile(d, &p.firstAway) })
	p.set = append(p.set, newStore(t, awayWhile(p.second, &p.otherAway)))
	return p
}

func awayWhile(d objstore.Driver, away *atomic.Bool) objstore.Driver {
	return faultstore.Wrap(d, func(faultstore.Call) faultstore.Fault {
		if away.Load() {
			return faultstore.Fault{Kind: faultstore.NotApplied}
		}
		return faultstore.Fault{}
	})
}

// copies says whether the second bucket holds what the first does, slot by slot.
func (p *pair) copies() (have, miss []string) {
	first, second := p.mem.Dump(), p.second.Dump()
	for key, body := range first {
		if k, err := segment.ParseKey(key); err != nil || k.Kind != segment.KeySlot {
			continue
		}
		if bytes.Equal(second[key], body) {
			have = append(have, key)
		} else {
			miss = append(miss, key)
		}
	}
	return have, miss
}

func (p *pair) wantAllCopied(n int) {
	p.t.Helper()
	if have, miss := p.copies(); len(have) != n || len(miss) != 0 {
		p.t.Errorf("copies of %v, none of %v; want %d", have, miss, n)
	}
}

// TestSetOfTwo: every slot goes to each bucket before it is acknowledged as shared.
func TestSetOfTwo(t *testing.T) {
	p := newPair(t)
	wr := p.open("a")
	for i := range 3 {
		p.mustAppend(wr, "s", AckShared, fmt.Sprint(i))
		p.wantAllCopied(i + 1)
	}
	p.mustClose(wr)
	p.checkStored()
}

// TestSecondBucketAway: shared acknowledgements go on, and the copies follow.
func TestSecondBucketAway(t *testing.T) {
	p := newPair(t)
	wr := p.open("a")
	s := wr.shards[0]
	p.otherAway.Store(true)
	for i := range 3 {
		p.mustAppend(wr, "s", AckShared, fmt.Sprint(i))
	}
	if have, _ := p.copies(); len(have) != 0 {
		t.Errorf("copies of %v in a bucket that is away", have)
	}
	if n := s.bucket.Owed.Len(); n != 3 {
		t.Errorf("%d copies owed", n)
	}
	p.otherAway.Store(false)
	eventually(t, s, "the copies are made", func() bool { return s.bucket.Owed.Len() == 0 })
	p.wantAllCopied(3)
	p.mustClose(wr)
	p.checkStored()
}

// TestFirstBucketAway: nothing is shared without the bucket that decides, whatever the
// other says; it goes on when the first is back.
func TestFirstBucketAway(t *testing.T) {
	p := newPair(t)
	wr := p.open("a")
	p.firstAway.Store(true)
	p.mustAppend(wr, "s", AckLocal, "one")
	flushed := make(chan error, 1)
	go func() { flushed <- wr.Flush(t.Context()) }()
	eventually(t, wr.shards[0], "a failure to publish", func() bool { return wr.Status()[0].LastError != "" })
	if len(p.second.Keys()) != 0 {
		t.Errorf("%v: a copy of what the first does not have", p.second.Keys())
	}
	select {
	case err := <-flushed:
		t.Fatalf("flushed without the first bucket: %v", err)
	default:
	}
	p.firstAway.Store(false)
	if err := <-flushed; err != nil {
		t.Fatal(err)
	}
	p.wantAllCopied(1)
	p.mustClose(wr)
	p.checkStored()
}

// TestCutBetweenTheTwoPuts: the slot stands in the first bucket, has no copy and is not
// absorbed. Whoever absorbs it makes the copy: its owner, another one, the auditor.
func TestCutBetweenTheTwoPuts(t *testing.T) {
	for _, who := range []string{"resumed", "taken over", "auditor"} {
		t.Run(who, func(t *testing.T) {
			p := newPair(t)
			cut, at := cutOnce(StepPlaced, 1)
			wr := p.open("a", func(o *Options) { o.Cut, o.Config.LeaseTime = cut, time.Hour })
			p.mustAppend(wr, "s", AckLocal, "one")
			mustSeal(t, wr.shards[0])
			<-at
			abandon(t, wr)
			if _, miss := p.copies(); len(miss) != 1 {
				t.Fatalf("the cut is not between the PUTs: %v", miss)
			}
			switch who {
			case "resumed":
				p.mustClose(p.open("a"))
			case "taken over":
				p.mustClose(p.open("c", func(o *Options) { o.Steal = true }))
			case "auditor":
				b := absorb.Bucket{Set: p.set, Class: segment.ClassStandard}
				row := p.chain(0)
				if _, err := absorb.All(t.Context(), p.cat, b, row.Chain, absorb.Caller{Owner: row.Owner, Term: row.Term}); err != nil {
					t.Fatal(err)
				}
			}
			if _, miss := p.copies(); len(miss) != 0 {
				t.Errorf("no copy of %v", miss)
			}
			p.checkStored()
		})
	}
}

// TestCutWithCopiesOwed: the owner dies with copies owed; the auditor's absorb-check
// makes them, also under the next owner's lease.
func TestCutWithCopiesOwed(t *testing.T) {
	p := newPair(t)
	wr := p.open("a")
	p.otherAway.Store(true)
	p.mustAppend(wr, "s", AckShared, "one", "two")
	abandon(t, wr)
	p.otherAway.Store(false)
	next := p.open("a")
	if _, miss := p.copies(); len(miss) == 0 {
		t.Fatal("nothing is missing")
	}
	k := absorb.Checker{Catalog: p.cat, Classes: objstore.Classes{string(segment.ClassStandard): p.set}}
	if _, err := k.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, miss := p.copies(); len(miss) != 0 {
		t.Errorf("no copy of %v", miss)
	}
	p.mustClose(next)
	p.checkStored()
}

// TestHydrateFromTheCopy: slots of which the first bucket has rotten bytes, or none, come
// back from the second; one that both have rotten is told, and the others are not held up.
func TestHydrateFromTheCopy(t *testing.T) {
	p := newPair(t)
	old := p.chainOf(t, 5)
	rot := func(body []byte) []byte { body[len(body)/3] ^= 1; return body }
	data := slices.DeleteFunc(p.second.Keys(), func(key string) bool {
		k, err := segment.ParseKey(key)
		return err != nil || k.Kind != segment.KeySlot
	})
	p.mem.Tamper(data[0], rot)
	p.mem.Tamper(data[1], func([]byte) []byte { return []byte("short") })
	p.second.Tamper(data[2], rot)
	p.mem.Tamper(data[3], rot)
	p.second.Tamper(data[3], rot)
	b := p.open("b")
	b.shards[0].hydrating.Wait()
	now := p.segmentFiles(t, "b")
	missing := 0
	for name, body := range old {
		if got, ok := now[name]; !ok {
			missing++
		} else if got != body {
			t.Errorf("%s is not the owner's file", name)
		}
	}
	if missing != 1 {
		t.Errorf("%d files were not restored, want the one that is rotten in both buckets", missing)
	}
	p.mustClose(b)
}
