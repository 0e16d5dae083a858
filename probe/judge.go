package probe

import (
	"fmt"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// DefaultGCLeast is the dead weight below which a rewrite costs more than the bytes
// are worth; above it, half of the object must be dead too.
const DefaultGCLeast = 64 << 20

// span is where a ref or a chunk stands: a stream has one chain in an epoch.
type span struct {
	stream string
	epoch  segment.Epoch
}

// judge folds footer and refs into a verdict. It is pure.
func judge(key string, footer *segment.Footer, refs []catalog.LiveRef, gcLeast int64) (Verdict, Tally, error) {
	byStream := make(map[span][]int, len(refs))
	for i := range refs {
		s := span{refs[i].Stream, refs[i].Epoch}
		byStream[s] = append(byStream[s], i)
	}
	met := make([]bool, len(refs))
	t := Tally{Refs: len(refs)}
	for i := range footer.Chunks {
		c := &footer.Chunks[i]
		live := false
		for _, j := range byStream[span{c.Stream, c.Epoch}] {
			first, last := max(c.First, refs[j].First), min(c.Last, refs[j].Last)
			if first > last {
				continue
			}
			met[j] = true
			if !(segment.Pos{Epoch: c.Epoch, Seq: last}).Less(refs[j].LiveFrom) {
				live = true
			}
		}
		t.add(c.Stored, live)
	}
	// A live ref that meets no chunk names bytes that are not there.
	if j := slices.Index(met, false); j >= 0 && !dead(&refs[j]) {
		return "", t, &DamageError{Key: key, Reason: fmt.Sprintf("a ref of stream %q, rows %v to %v, meets no chunk of its footer", refs[j].Stream, refs[j].FirstPos(), refs[j].LastPos())}
	}
	return t.verdict(gcLeast), t, nil
}

func (t *Tally) add(bytes int64, live bool) {
	if live {
		t.LiveBytes += bytes
		t.LiveChunks++
		return
	}
	t.DeadBytes += bytes
	t.DeadChunks++
}

func (t *Tally) verdict(gcLeast int64) Verdict {
	switch {
	case t.LiveChunks == 0:
		return Reapable
	case t.DeadBytes >= max(gcLeast, (t.LiveBytes+t.DeadBytes+1)/2):
		return GCWorthy
	}
	return Stand
}

// dead says whether the whole ref lies below its stream's live_from.
func dead(r *catalog.LiveRef) bool { return r.LastPos().Less(r.LiveFrom) }

// judgeGone: nothing stands under the key. Under a live ref that is a loss, which
// no verdict may hide.
func judgeGone(key string, refs []catalog.LiveRef) (Verdict, Tally, error) {
	for i := range refs {
		if !dead(&refs[i]) {
			return "", Tally{}, &DamageError{Key: key, Reason: fmt.Sprintf("no object, but a ref of stream %q, rows %v to %v, names it", refs[i].Stream, refs[i].FirstPos(), refs[i].LastPos())}
		}
	}
	return Gone, Tally{Refs: len(refs)}, nil
}

// judgeStructural: the bytes were read in full and are no object. Unnamed, they
// are garbage like any other; named by a live ref, they are corruption.
func judgeStructural(key string, size int64, refs []catalog.LiveRef, cause error) (Verdict, Tally, error) {
	for i := range refs {
		if !dead(&refs[i]) {
			return "", Tally{}, fmt.Errorf("probe %s: %w", key, cause)
		}
	}
	return Reapable, Tally{DeadBytes: size, Refs: len(refs), Structural: true, Reason: cause.Error()}, nil
}

// checkRefs refuses what this version does not understand (K14): an unknown kind,
// or a ref whose kind or class is not that of the object it names.
func checkRefs(key string, kind segment.ObjectKind, class segment.Class, refs []catalog.LiveRef) error {
	want := catalog.RefStream
	if kind == segment.ObjPack {
		want = catalog.RefPack
	}
	for i := range refs {
		r := &refs[i]
		switch {
		case r.Key != key:
			return &RefsError{Key: key, Err: fmt.Errorf("the catalog answered with a ref of %s", r.Key)}
		case r.Kind != want:
			return &RefsError{Key: key, Err: fmt.Errorf("a ref of kind %q names it, want %q: does a newer version run on this catalog?", r.Kind, want)}
		case r.Class != class:
			return &RefsError{Key: key, Err: fmt.Errorf("its ref is of class %q, its marker of class %q", r.Class, class)}
		}
	}
	return nil
}
