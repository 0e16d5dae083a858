package column

import (
	"fmt"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// Ref reads the columns of a ref, which are read with left joins: one that names a missing
// row is corruption, and must not look like no ref at all. They are, in order,
//
//	stream, its name, epoch, shard, first, last, epoch and seq of prev_last
//	the object's key, kind, class, revision, generation
//	chunks, offset, stored, raw, codec, crc, sum, rows, row sum, bytes, min and max time
//	live_from's epoch (-1: no stream), its seq, the chain's watermark (-1: no chain)
//
// and more behind them. The name goes to name. The effective live_from is that of its
// stream in its chain.
func Ref(scan Scan, name any, more ...any) (catalog.LiveRef, error) {
	var v [21]int64
	var liveEpoch, liveSeq, watermark int64
	var l catalog.LiveRef
	r := &l.Ref
	if err := scan(append([]any{
		&v[0], name, &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
		&r.Key, (*string)(&r.Kind), (*string)(&r.Class), &v[7], &v[8],
		&v[9], &v[10], &v[11], &v[12], &v[13], &v[14], &v[15], &v[16], &v[17], &v[18], &v[19], &v[20],
		&liveEpoch, &liveSeq, &watermark,
	}, more...)...); err != nil {
		return l, err
	}
	r.StreamID = v[0]
	r.Chain = segment.Chain{Epoch: segment.Epoch(v[1]), Shard: segment.Shard(v[2])}
	r.First, r.Last = segment.Seq(v[3]), segment.Seq(v[4])
	r.PrevLast = segment.Pos{Epoch: segment.Epoch(v[5]), Seq: segment.Seq(v[6])}
	r.Revision, r.Generation = int32(v[7]), uint32(v[8])
	r.Chunks, r.Offset, r.Stored, r.Raw = uint32(v[9]), v[10], v[11], v[12]
	r.Codec, r.CRC, r.Sum = segment.Codec(v[13]), uint32(v[14]), uint64(v[15])
	r.Rows, r.RowSum, r.Bytes = uint64(v[16]), uint64(v[17]), v[18]
	r.MinTime, r.MaxTime = v[19], v[20]
	if r.Kind == "" || liveEpoch < 0 || watermark < 0 {
		return l, fmt.Errorf("%w: ref %s of stream %d names no object, stream or chain that stands; run fsck", catalog.ErrCorrupt, r.FirstPos(), r.StreamID)
	}
	l.LiveFrom = catalog.EffectiveLiveFrom(segment.Pos{Epoch: segment.Epoch(liveEpoch), Seq: segment.Seq(liveSeq)}, r.Chain, segment.Seq(watermark))
	return l, nil
}

// RefID is a ref's primary key: stream, epoch, first.
type RefID [3]int64

// IDOf is the key of a ref.
func IDOf(r *catalog.Ref) RefID { return RefID{r.StreamID, int64(r.Epoch), int64(r.First)} }

// Standing are refs as they stand.
type Standing map[RefID]catalog.LiveRef

// Of is the one that begins where r does, nil if none does.
func (s Standing) Of(r *catalog.Ref) *catalog.LiveRef {
	if l, ok := s[IDOf(r)]; ok {
		return &l
	}
	return nil
}

// At is the one that begins at a position of a stream, nil if none does.
func (s Standing) At(stream int64, at segment.Pos) *catalog.Ref {
	if l, ok := s[RefID{stream, int64(at.Epoch), int64(at.Seq)}]; ok {
		return &l.Ref
	}
	return nil
}
