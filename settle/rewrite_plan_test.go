package settle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// spanOf is a ref of stream 1, "s": rows first to last, linked to prev, of stored bytes.
func spanOf(kind catalog.RefKind, key string, first, last, prev segment.Seq, stored int64) catalog.Ref {
	return catalog.Ref{
		StreamID: 1, Stream: "s", Chain: segment.Chain{Epoch: 1}, First: first, Last: last, PrevLast: segment.Pos{Epoch: 1, Seq: prev},
		Key: key, Kind: kind, Chunks: 1, Stored: stored, Raw: stored, Bytes: stored,
	}
}

func ordered(bound int64) order {
	cfg := Config{StreamObjectMin: 100, TailTarget: 1000}.withDefaults()
	return order{holder: catalog.Holder{Duty: "test"}, bound: bound, cfg: &cfg}
}

// said writes a debt down: key, generation, then each member's runs as their refs' firsts.
func said(d debt) string {
	if d.idle != "" {
		return "idle"
	}
	var out []string
	for _, j := range d.jobs {
		b := &strings.Builder{}
		fmt.Fprintf(b, "%s g%d:", j.key(j.revision), j.generation)
		for _, m := range j.members {
			fmt.Fprintf(b, " %s", m.stream)
			for _, r := range m.runs {
				b.WriteString("[")
				for i := range r.refs {
					fmt.Fprintf(b, " %d", r.refs[i].First)
				}
				b.WriteString(" ]")
			}
		}
		out = append(out, b.String())
	}
	return strings.Join(out, "; ")
}

func TestPlanGC(t *testing.T) {
	stream, pack := segment.StreamKey("s", 1, 1, 2), segment.PackKey(segment.Chain{Epoch: 1}, 3, 4, 0)
	of := func(kind catalog.RefKind, key string, liveFrom segment.Seq, spans ...[3]segment.Seq) (out []catalog.LiveRef) {
		for _, s := range spans {
			r := spanOf(kind, key, s[0], s[1], s[2], 10)
			if r.Revision = 2; kind == catalog.RefPack {
				r.Revision, r.Generation = 0, 5
			}
			out = append(out, catalog.LiveRef{Ref: r, LiveFrom: segment.Pos{Epoch: 1, Seq: liveFrom}})
		}
		return out
	}
	other := func(refs []catalog.LiveRef) []catalog.LiveRef {
		for i := range refs {
			refs[i].StreamID, refs[i].Stream = 2, "other"
		}
		return refs
	}
	s, p := catalog.RefStream, catalog.RefPack
	for name, c := range map[string]struct {
		key   string
		refs  []catalog.LiveRef
		bound int64
		want  string
	}{
		"nothing names it":       {stream, nil, 100, "idle"},
		"all dead":               {stream, of(s, stream, 21, [3]segment.Seq{1, 10, 0}, [3]segment.Seq{11, 20, 10}), 100, "idle"},
		"the dead stay behind":   {stream, of(s, stream, 11, [3]segment.Seq{1, 10, 0}, [3]segment.Seq{11, 20, 10}), 100, "obj/7a0/s/00000001.000000000000000b~00000003 g0: s[ 11 ]"},
		"one is cut":             {stream, of(s, stream, 5, [3]segment.Seq{1, 10, 0}, [3]segment.Seq{11, 20, 10}), 100, "obj/7a0/s/00000001.0000000000000001~00000003 g0: s[ 1 11 ]"},
		"a gap parts two runs":   {stream, of(s, stream, 1, [3]segment.Seq{1, 10, 0}, [3]segment.Seq{31, 40, 30}), 100, "obj/7a0/s/00000001.0000000000000001~00000003 g0: s[ 1 ][ 31 ]"},
		"the bound ends it":      {stream, of(s, stream, 1, [3]segment.Seq{1, 10, 0}, [3]segment.Seq{11, 20, 10}, [3]segment.Seq{31, 40, 30}), 20, "obj/7a0/s/00000001.0000000000000001~00000003 g0: s[ 1 11 ]"},
		"one ref at least":       {stream, of(s, stream, 1, [3]segment.Seq{1, 10, 0}, [3]segment.Seq{11, 20, 10}), 1, "obj/7a0/s/00000001.0000000000000001~00000003 g0: s[ 1 ]"},
		"a pack keeps its range": {pack, append(of(p, pack, 1, [3]segment.Seq{1, 10, 0}), other(of(p, pack, 3, [3]segment.Seq{2, 4, 0}))...), 100, "pack/00000001.00000000/0000000000000003-0000000000000004~00000001 g5: other[ 2 ] s[ 1 ]"},
		"the bound in a pack":    {pack, append(of(p, pack, 1, [3]segment.Seq{1, 10, 0}), other(of(p, pack, 3, [3]segment.Seq{2, 4, 0}))...), 10, "pack/00000001.00000000/0000000000000003-0000000000000004~00000001 g5: other[ 2 ]"},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := segment.ParseKey(c.key)
			must(t, err)
			if got := said(planGC(&k, c.refs, ordered(c.bound))); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestPlanTail(t *testing.T) {
	const tail = "obj/tail"
	obj, pack, slot, lost := catalog.RefStream, catalog.RefPack, catalog.RefSlot, catalog.RefLost
	at := func(kind catalog.RefKind, key string, first segment.Seq, stored int64) catalog.Ref {
		return spanOf(kind, key, first, first+9, first-1, stored)
	}
	elsewhere := func(r catalog.Ref) catalog.Ref { r.Shard = 3; return r }
	later := func(r catalog.Ref) catalog.Ref { r.Epoch = 2; return r }
	unlinked := func(r catalog.Ref) catalog.Ref { r.PrevLast.Seq--; return r }
	revised := func(r catalog.Ref) catalog.Ref { r.Revision = 7; return r }
	key := func(first segment.Seq, rev uint32) string { return segment.StreamKey("s", 1, first, rev) }
	for name, c := range map[string]struct {
		refs  []catalog.Ref
		live  segment.Seq
		bound int64
		want  string
	}{
		"nothing follows":             {[]catalog.Ref{at(obj, tail, 1, 100)}, 1, 1e6, "idle"},
		"the tail is gone":            {[]catalog.Ref{at(obj, "a", 1, 100), at(obj, "b", 11, 100)}, 1, 1e6, "idle"},
		"a quarter follows":           {[]catalog.Ref{at(obj, tail, 1, 100), at(obj, "a", 11, 25)}, 1, 1e6, key(1, 1) + " g0: s[ 1 11 ]"},
		"less than a quarter":         {[]catalog.Ref{at(obj, tail, 1, 100), at(obj, "a", 11, 24)}, 1, 1e6, "idle"},
		"two make a quarter":          {[]catalog.Ref{at(obj, tail, 1, 100), at(obj, "a", 11, 15), at(pack, "b", 21, 10)}, 1, 1e6, key(1, 1) + " g0: s[ 1 11 21 ]"},
		"a pack rides along, first":   {[]catalog.Ref{at(obj, tail, 1, 100), at(pack, "b", 11, 10), at(obj, "a", 21, 15)}, 1, 1e6, key(1, 1) + " g0: s[ 1 11 21 ]"},
		"the target is reached":       {[]catalog.Ref{at(obj, tail, 1, 1000), at(obj, "a", 11, 900)}, 1, 1e6, "idle"},
		"two refs of it reach it":     {[]catalog.Ref{at(obj, tail, 1, 500), at(obj, tail, 11, 500), at(obj, "a", 21, 900)}, 1, 1e6, "idle"},
		"a slot ends it":              {[]catalog.Ref{at(obj, tail, 1, 100), at(obj, "a", 11, 50), at(slot, "x", 21, 50), at(obj, "b", 31, 50)}, 1, 1e6, key(1, 1) + " g0: s[ 1 11 ]"},
		"a lost span ends it":         {[]catalog.Ref{at(obj, tail, 1, 100), at(lost, "", 11, 50), at(obj, "b", 21, 50)}, 1, 1e6, "idle"},
		"a gap ends it":               {[]catalog.Ref{at(obj, tail, 1, 100), at(obj, "a", 11, 50), unlinked(at(obj, "b", 21, 50))}, 1, 1e6, key(1, 1) + " g0: s[ 1 11 ]"},
		"another epoch ends it":       {[]catalog.Ref{at(obj, tail, 1, 100), at(obj, "a", 11, 50), later(at(obj, "b", 21, 50))}, 1, 1e6, key(1, 1) + " g0: s[ 1 11 ]"},
		"another chain ends it":       {[]catalog.Ref{at(obj, tail, 1, 100), elsewhere(at(obj, "a", 11, 50))}, 1, 1e6, "idle"},
		"its last run counts":         {[]catalog.Ref{at(obj, tail, 1, 100), at(slot, "x", 11, 5), at(obj, tail, 21, 100), at(obj, "a", 31, 50)}, 1, 1e6, key(21, 1) + " g0: s[ 21 31 ]"},
		"the bound ends it":           {[]catalog.Ref{at(obj, tail, 1, 100), at(obj, "a", 11, 50), at(obj, "b", 21, 50)}, 1, 150, key(1, 1) + " g0: s[ 1 11 ]"},
		"the bound holds one":         {[]catalog.Ref{at(obj, tail, 1, 100), at(obj, "a", 11, 50)}, 1, 149, "idle"},
		"above the highest revision":  {[]catalog.Ref{at(obj, tail, 1, 100), revised(at(obj, "a", 11, 50))}, 1, 1e6, key(1, 8) + " g0: s[ 1 11 ]"},
		"the tail's head is dead":     {[]catalog.Ref{at(obj, tail, 1, 100), at(obj, tail, 11, 20), at(obj, "a", 21, 10)}, 11, 1e6, key(11, 1) + " g0: s[ 11 21 ]"},
		"live_from cuts the tail":     {[]catalog.Ref{at(obj, tail, 1, 100), at(obj, "a", 11, 50)}, 5, 1e6, key(1, 1) + " g0: s[ 1 11 ]"},
		"the tail is dead":            {[]catalog.Ref{at(obj, tail, 1, 100), at(obj, "a", 11, 50)}, 11, 1e6, "idle"},
		"the tail is served by packs": {[]catalog.Ref{at(pack, tail, 1, 100), at(obj, "a", 11, 50)}, 1, 1e6, "idle"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := said(planTail(tail, c.refs, segment.Pos{Epoch: 1, Seq: c.live}, ordered(c.bound))); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestPlanMerge(t *testing.T) {
	chain := segment.Chain{Epoch: 1}
	pack := func(first, last segment.ID, rev uint32) string { return segment.PackKey(chain, first, last, rev) }
	a, b, c3 := pack(1, 4, 0), pack(5, 5, 0), pack(6, 9, 0)
	of := func(stream string, id int64, key string, first, prev segment.Seq, stored int64) catalog.Ref {
		r := spanOf(catalog.RefPack, key, first, first+9, prev, stored)
		r.Stream, r.StreamID, r.Generation = stream, id, 2
		k, err := segment.ParseKey(key)
		must(t, err)
		r.Revision = int32(k.Revision)
		return r
	}
	three := []catalog.Ref{of("x", 1, a, 1, 0, 30), of("x", 1, b, 11, 10, 30), of("x", 1, c3, 21, 20, 30)}
	for name, c := range map[string]struct {
		packs []string
		refs  []catalog.Ref
		bound int64
		live  segment.Seq
		want  string
	}{
		"none":                        {nil, nil, 1e6, 0, "idle"},
		"one":                         {[]string{a}, three[:1], 1e6, 0, "idle"},
		"three":                       {[]string{a, b, c3}, three, 1e6, 0, pack(1, 9, 1) + " g3: x[ 1 11 21 ]"},
		"the bound takes two":         {[]string{a, b, c3}, three, 60, 0, pack(1, 5, 1) + " g3: x[ 1 11 ]"},
		"no two fit":                  {[]string{a, b, c3}, three, 59, 0, "idle"},
		"a large one is passed over":  {[]string{a, b, c3}, []catalog.Ref{of("x", 1, a, 1, 0, 50), three[1], three[2]}, 60, 0, pack(5, 9, 1) + " g3: x[ 11 21 ]"},
		"a dead one is no pack":       {[]string{a, b, c3}, three, 1e6, 11, pack(5, 9, 1) + " g3: x[ 11 21 ]"},
		"a stream that has grown":     {[]string{a, b}, []catalog.Ref{of("big", 2, a, 1, 0, 50), of("big", 2, b, 11, 10, 50), of("x", 1, b, 31, 0, 9)}, 1e6, 0, pack(1, 5, 1) + " g3: x[ 31 ]; " + segment.StreamKey("big", 1, 1, 1) + " g0: big[ 1 11 ]"},
		"one that has not":            {[]string{a, b}, []catalog.Ref{of("big", 2, a, 1, 0, 50), of("big", 2, b, 11, 10, 49)}, 1e6, 0, pack(1, 5, 1) + " g3: big[ 1 11 ]"},
		"streams alone":               {[]string{a, b}, []catalog.Ref{of("big", 2, a, 1, 0, 50), of("big", 2, b, 11, 10, 50)}, 1e6, 0, segment.StreamKey("big", 1, 1, 1) + " g0: big[ 1 11 ]"},
		"what stands between parts":   {[]string{a, c3}, []catalog.Ref{three[0], three[2]}, 1e6, 0, pack(1, 9, 1) + " g3: x[ 1 ][ 21 ]"},
		"a retry of the same slots":   {[]string{a, pack(1, 4, 1)}, []catalog.Ref{three[0], of("x", 1, pack(1, 4, 1), 11, 10, 5)}, 1e6, 0, pack(1, 4, 2) + " g3: x[ 1 11 ]"},
		"a retry within a wider pack": {[]string{pack(1, 9, 0), pack(2, 3, 0)}, []catalog.Ref{of("x", 1, pack(1, 9, 0), 1, 0, 5), of("x", 1, pack(2, 3, 0), 11, 10, 5)}, 1e6, 0, pack(1, 9, 1) + " g3: x[ 1 11 ]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := catalog.PackWindow{Chain: catalog.ChainRow{Chain: chain}, Packs: c.packs, Refs: c.refs, LiveFrom: map[int64]segment.Pos{1: {Epoch: 1, Seq: c.live}}}
			d, err := planMerge(&w, 2, ordered(c.bound))
			if got := said(d); err != nil || got != c.want {
				t.Errorf("%s, %v\nwant %s", got, err, c.want)
			}
		})
	}
	w := catalog.PackWindow{Packs: []string{"pack/junk", a}, Refs: []catalog.Ref{{Key: "pack/junk", Stored: 1}, three[0]}}
	if _, err := planMerge(&w, 2, ordered(1e6)); err == nil {
		t.Error("packs under a key of another shape")
	}
}
