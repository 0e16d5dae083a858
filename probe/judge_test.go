package probe

import (
	"errors"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

var key = segment.StreamKey("s", 1, 1, 0)

func chunk(stream string, first, last segment.Seq, stored int64) segment.Chunk {
	return segment.Chunk{Stream: stream, Epoch: 1, First: first, Last: last, Stored: stored}
}

func ref(stream string, first, last, liveFrom segment.Seq) catalog.LiveRef {
	return catalog.LiveRef{
		Ref:      catalog.Ref{Stream: stream, Chain: segment.Chain{Epoch: 1}, First: first, Last: last, Key: key, Kind: catalog.RefStream, Class: segment.ClassStandard},
		LiveFrom: segment.Pos{Epoch: 1, Seq: liveFrom},
	}
}

func TestJudge(t *testing.T) {
	const mib = 1 << 20
	two := []segment.Chunk{chunk("s", 1, 10, 40*mib), chunk("s", 11, 20, 100*mib)}
	for name, c := range map[string]struct {
		chunks []segment.Chunk
		refs   []catalog.LiveRef
		want   Verdict
		live   int64
	}{
		"no ref names it":                                {two, nil, Reapable, 0},
		"a ref covers all":                               {two, []catalog.LiveRef{ref("s", 1, 20, 1)}, Stand, 140 * mib},
		"a ref that begins inside a chunk keeps it":      {two, []catalog.LiveRef{ref("s", 15, 20, 1)}, Stand, 100 * mib},
		"a ref that ends inside a chunk keeps it":        {two, []catalog.LiveRef{ref("s", 1, 5, 1)}, GCWorthy, 40 * mib},
		"the dead reach 64 MiB and half":                 {two, []catalog.LiveRef{ref("s", 1, 10, 1)}, GCWorthy, 40 * mib},
		"half is dead, but too little":                   {[]segment.Chunk{chunk("s", 1, 1, mib), chunk("s", 2, 2, 2*mib)}, []catalog.LiveRef{ref("s", 1, 1, 1)}, Stand, mib},
		"much is dead, but not half":                     {[]segment.Chunk{chunk("s", 1, 1, 100*mib), chunk("s", 2, 2, 99*mib)}, []catalog.LiveRef{ref("s", 1, 1, 1)}, Stand, 100 * mib},
		"a ref wholly below live_from is dead":           {two, []catalog.LiveRef{ref("s", 1, 20, 21)}, Reapable, 0},
		"live_from cuts: below dead, above live":         {two, []catalog.LiveRef{ref("s", 1, 20, 11)}, Stand, 100 * mib},
		"live_from inside a chunk keeps it":              {two, []catalog.LiveRef{ref("s", 1, 20, 10)}, Stand, 140 * mib},
		"a ref of another stream keeps nothing of this":  {[]segment.Chunk{chunk("a", 1, 5, mib), chunk("b", 6, 9, mib)}, []catalog.LiveRef{ref("b", 6, 9, 1)}, Stand, mib},
		"a later epoch's live_from kills an earlier row": {two, []catalog.LiveRef{{Ref: ref("s", 1, 20, 1).Ref, LiveFrom: segment.Pos{Epoch: 2, Seq: 1}}}, Reapable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			v, tally, err := judge(key, &segment.Footer{Kind: segment.ObjStream, Chunks: c.chunks}, c.refs, DefaultGCLeast)
			if err != nil || v != c.want || tally.LiveBytes != c.live {
				t.Fatalf("%s, %d live bytes (%v), want %s, %d", v, tally.LiveBytes, err, c.want, c.live)
			}
			var all int64
			for _, ch := range c.chunks {
				all += ch.Stored
			}
			if tally.LiveBytes+tally.DeadBytes != all || tally.LiveChunks+tally.DeadChunks != len(c.chunks) {
				t.Fatalf("tally %+v does not add up", tally)
			}
		})
	}
}

func TestJudgeRefusesALiveRefWithoutItsBytes(t *testing.T) {
	f := &segment.Footer{Kind: segment.ObjStream, Chunks: []segment.Chunk{chunk("s", 1, 10, 1)}}
	for name, r := range map[string]catalog.LiveRef{
		"rows that it does not hold": ref("s", 11, 12, 1),
		"a stream it does not hold":  ref("t", 1, 10, 1),
	} {
		if _, _, err := judge(key, f, []catalog.LiveRef{r}, DefaultGCLeast); !errors.Is(err, ErrDamage) {
			t.Errorf("%s: %v, want damage", name, err)
		}
	}
	if v, _, err := judge(key, f, []catalog.LiveRef{ref("t", 1, 10, 11)}, DefaultGCLeast); err != nil || v != Reapable {
		t.Errorf("a dead ref of another stream: %s (%v), want reapable", v, err)
	}
}

func TestK14UnknownRefsStopDeleting(t *testing.T) {
	fine := ref("s", 1, 10, 1)
	for name, change := range map[string]func(*catalog.LiveRef){
		"an unknown kind":       func(r *catalog.LiveRef) { r.Kind = "hologram" },
		"a kind of another key": func(r *catalog.LiveRef) { r.Kind = catalog.RefPack },
		"another class":         func(r *catalog.LiveRef) { r.Class = "express" },
		"another key":           func(r *catalog.LiveRef) { r.Key += "~00000001" },
	} {
		r := fine
		change(&r)
		var fault *RefsError
		if err := checkRefs(key, segment.ObjStream, segment.ClassStandard, []catalog.LiveRef{fine, r}); !errors.As(err, &fault) {
			t.Errorf("%s: %v, want a *RefsError", name, err)
		}
	}
	if err := checkRefs(key, segment.ObjStream, segment.ClassStandard, []catalog.LiveRef{fine}); err != nil {
		t.Error(err)
	}
}

func TestJudgeGone(t *testing.T) {
	if _, _, err := judgeGone(key, []catalog.LiveRef{ref("s", 1, 10, 1)}); !errors.Is(err, ErrDamage) {
		t.Errorf("gone under a live ref: %v, want damage", err)
	}
	for _, refs := range [][]catalog.LiveRef{nil, {ref("s", 1, 10, 11)}} {
		if v, _, err := judgeGone(key, refs); v != Gone || err != nil {
			t.Errorf("%s (%v), want gone", v, err)
		}
	}
}
