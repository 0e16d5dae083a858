package check

import (
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// coverage says in words why a footer does not cover a ref, or nothing. Chunks that
// are wholly the ref's must add up to what it says. Of a ref that is a part of a
// chunk (the rest of a shorter output, the head of a trimmed one) only the bounds
// can be told: which rows lie before its first is in the chunk, not in the footer.
func coverage(f *segment.Footer, ref *catalog.Ref) string {
	if f.Kind != kindOfRef[ref.Kind] {
		return fmt.Sprintf("its object is a %s, the ref says %s", f.Kind, ref.Kind)
	}
	var rows, sum, whole uint64
	var first, last segment.Seq
	var only *segment.Chunk
	found, cut := 0, false
	for i := range f.Chunks {
		c := &f.Chunks[i]
		if !overlaps(c, ref) {
			continue
		}
		if found == 0 {
			first, only = c.First, c
		}
		found++
		last = c.Last
		rows += c.Rows
		sum += c.RowSum
		if c.First < ref.First || c.Last > ref.Last {
			cut = true
		} else {
			whole += c.Rows
		}
	}
	switch {
	case found == 0:
		return "its footer has no chunk of the stream there"
	case last < ref.Last:
		return fmt.Sprintf("its footer covers rows %d to %d only", first, last)
	case cut && (rows < ref.Rows || whole > ref.Rows), !cut && (rows != ref.Rows || sum != ref.RowSum):
		return fmt.Sprintf("its footer says %d rows of sum %016x, the ref %d of %016x", rows, sum, ref.Rows, ref.RowSum)
	}
	return misplaced(ref, found, only)
}

func overlaps(c *segment.Chunk, ref *catalog.Ref) bool {
	return c.Stream == ref.Stream && c.Epoch == ref.Epoch && c.Last >= ref.First && c.First <= ref.Last
}

// misplaced: a ref of one chunk is read by its own word, without the footer, so it must
// say the same of the chunk. Others go by the footer.
func misplaced(ref *catalog.Ref, found int, c *segment.Chunk) string {
	if ref.Chunks != 1 {
		return ""
	}
	if found != 1 {
		return fmt.Sprintf("its footer has %d chunks there, the ref says one", found)
	}
	if c.Offset != ref.Offset || c.Stored != ref.Stored || c.Raw != ref.Raw || c.Codec != ref.Codec || c.CRC != ref.CRC || c.Sum != ref.Sum {
		return fmt.Sprintf("its footer has the chunk at byte %d (%d stored, %d raw, %s, digest %016x), the ref at %d (%d, %d, %s, %016x): readers go by the ref",
			c.Offset, c.Stored, c.Raw, c.Codec, c.Sum, ref.Offset, ref.Stored, ref.Raw, ref.Codec, ref.Sum)
	}
	return ""
}

// kindOfRef: what the refs of each kind name.
var kindOfRef = map[catalog.RefKind]segment.ObjectKind{
	catalog.RefSlot: segment.ObjSlot, catalog.RefStream: segment.ObjStream, catalog.RefPack: segment.ObjPack,
}
