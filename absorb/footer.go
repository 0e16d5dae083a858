package absorb

import (
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// Bucket is where the slots of an epoch stand.
type Bucket struct {
	Set   objstore.Set
	Class segment.Class
	// Owed remembers the copies that an owner could not make yet; nil for anyone else.
	Owed *Owed
}

// Caller is the chain's owner; the zero Caller is anyone else.
type Caller struct {
	Owner segment.UUID
	Term  segment.Term
}

// FromFooter turns the footer of the slot under key, size bytes long, into what
// AbsorbSlot takes. Pure: an owner who just built the slot reads nothing back.
func FromFooter(f *segment.Footer, b Bucket, key string, size int64, who Caller) catalog.Absorb {
	s := f.Slot
	a := catalog.Absorb{
		Slot: catalog.SlotRow{
			Chain: s.Chain, ID: s.ID, First: s.Base, Next: s.Next, Bytes: size,
			UUID: s.UUID, Prev: s.Prev, Digest: s.Digest, Term: s.Term,
			Sealed: time.Unix(0, s.Sealed), Closed: s.Closed,
		},
		Key: key, Class: b.Class, Consumers: s.Consumers,
		CallerOwner: who.Owner, CallerTerm: who.Term,
		Refs: make([]catalog.Ref, 0, len(f.Chunks)),
	}
	for i := range f.Chunks {
		// The reserved stream "" holds header and control frames: it has no ref.
		if f.Chunks[i].Stream != "" {
			a.Refs = append(a.Refs, refOf(&f.Chunks[i], s, key, b.Class))
		}
	}
	return a
}

func refOf(c *segment.Chunk, s *segment.Slot, key string, class segment.Class) catalog.Ref {
	return catalog.Ref{
		Stream: c.Stream, Chain: s.Chain, First: c.First, Last: c.Last,
		Key: key, Kind: catalog.RefSlot, Class: class, Revision: -1,
		Chunks: 1, Offset: c.Offset, Stored: c.Stored, Raw: c.Raw, Codec: c.Codec, CRC: c.CRC, Sum: c.Sum,
		Rows: c.Rows, RowSum: c.RowSum, Bytes: c.Raw, MinTime: c.MinTime, MaxTime: c.MaxTime,
	}
}
