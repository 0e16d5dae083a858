package postgres

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// A ref is read with left joins: one that names a missing row is corruption, and must not
// look like no ref at all.
const (
	refCols = `r.stream, s.name, r.epoch, r.shard, r.first, r.last, r.prev_epoch, r.prev_seq,
 COALESCE(o.key, ''), COALESCE(o.kind, ''), COALESCE(o.class, ''), COALESCE(o.revision, 0), COALESCE(o.generation, 0),
 r.chunks, r.off, r.stored, r.raw, r.codec, r.crc, r.sum, r.rows, r.row_sum, r.bytes, r.min_time, r.max_time,
 COALESCE(s.live_epoch, -1), COALESCE(s.live_seq, 0), COALESCE(c.watermark_seq, -1)`
	streamJoin = ` LEFT JOIN stream s ON s.id = r.stream LEFT JOIN chain c ON c.epoch = r.epoch AND c.shard = r.shard `
	refJoins   = ` LEFT JOIN object o ON o.id = r.object` + streamJoin
	selectRefs = "SELECT " + refCols + " FROM ref r" + refJoins
	// naming begins the query for all refs that name objects, found by the object's key.
	naming = "SELECT " + refCols + " FROM object o JOIN ref r ON r.object = o.id" + streamJoin
	// notDead is !Dead(EffectiveLiveFrom(…)), or that a row is missing.
	notDead = `(s.id IS NULL OR c.epoch IS NULL OR (r.epoch, r.last) >= (s.live_epoch, s.live_seq) AND r.last > c.watermark_seq)`
)

// scanRef reads refCols: the ref and the effective live_from of its stream in its chain.
func scanRef(scan scanFunc, more ...any) (catalog.LiveRef, error) {
	var v [21]int64
	var name []byte
	var liveEpoch, liveSeq, watermark int64
	var l catalog.LiveRef
	r := &l.Ref
	if err := scan(append([]any{
		&v[0], &name, &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
		&r.Key, (*string)(&r.Kind), (*string)(&r.Class), &v[7], &v[8],
		&v[9], &v[10], &v[11], &v[12], &v[13], &v[14], &v[15], &v[16], &v[17], &v[18], &v[19], &v[20],
		&liveEpoch, &liveSeq, &watermark,
	}, more...)...); err != nil {
		return l, err
	}
	r.StreamID, r.Stream = v[0], string(name)
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

func (t *tx) askRefs(out *[]catalog.LiveRef, q string, args ...any) {
	t.ask(q, func(scan scanFunc) error {
		l, err := scanRef(scan)
		*out = append(*out, l)
		return err
	}, args...)
}

// sortRefs brings refs into the order of the table.
func sortRefs(refs []catalog.Ref) {
	slices.SortFunc(refs, func(a, b catalog.Ref) int {
		return cmp.Or(cmp.Compare(a.StreamID, b.StreamID), a.FirstPos().Compare(b.FirstPos()))
	})
}

// refID is a ref's primary key.
type refID struct{ stream, epoch, first int64 }

func idOf(r *catalog.Ref) refID { return refID{r.StreamID, int64(r.Epoch), int64(r.First)} }

// idsOf are the keys of refs as columns.
func idsOf(refs []catalog.Ref) (streams, epochs, firsts []int64) {
	streams, epochs, firsts = make([]int64, len(refs)), make([]int64, len(refs)), make([]int64, len(refs))
	for i := range refs {
		id := idOf(&refs[i])
		streams[i], epochs[i], firsts[i] = id.stream, id.epoch, id.first
	}
	return streams, epochs, firsts
}

// askStanding reads those of the refs that stand, whatever they look like now. It takes
// no lock: deleteRefs finds out whether one moved since.
func (t *tx) askStanding(refs []catalog.Ref) map[refID]catalog.LiveRef {
	out := make(map[refID]catalog.LiveRef, len(refs))
	streams, epochs, firsts := idsOf(refs)
	t.ask("SELECT "+refCols+` FROM unnest($1::int8[], $2::int8[], $3::int8[]) j(stream, epoch, first)
 JOIN ref r ON r.stream = j.stream AND r.epoch = j.epoch AND r.first = j.first`+refJoins, func(scan scanFunc) error {
		l, err := scanRef(scan)
		out[idOf(&l.Ref)] = l
		return err
	}, streams, epochs, firsts)
	return out
}

// deleteRefs queues the deletion of refs as they were seen: each still names the object
// that it named, and ends where it ended. If one does not, another verb came in between
// (two commits, a commit and a retire, a retire and a loss over one ref): whoever deletes
// first wins, the other waits for it at the row, counts one less, and is run again.
func (t *tx) deleteRefs(refs []catalog.Ref, objects map[string]int64) {
	streams, epochs, firsts := idsOf(refs)
	named, lasts := make([]int64, len(refs)), make([]int64, len(refs))
	for i := range refs {
		named[i], lasts[i] = objects[refs[i].Key], int64(refs[i].Last)
	}
	t.execAll(len(refs), `DELETE FROM ref USING unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[]) j(stream, epoch, first, object, last)
 WHERE ref.stream = j.stream AND ref.epoch = j.epoch AND ref.first = j.first AND ref.object = j.object AND ref.last = j.last`,
		streams, epochs, firsts, named, lasts)
}

// lockObjects makes rows for the objects that refs to come name, and keeps them and those
// of refs that go, in one order. A verb that adds or removes a ref of an object holds its
// row, so the last ref of an object is the last for everybody: of two that each remove one
// of two refs, one sees none left and drops the row; and nobody names a row that is being
// dropped.
func (t *tx) lockObjects(come, gone []catalog.Ref) (map[string]int64, error) {
	created := distinct(come)
	t.createObjects(created)
	keys := keysOf(slices.Concat(come, gone), func(*catalog.Ref) bool { return true })
	slices.Sort(keys)
	out := make(map[string]int64, len(keys))
	have := make(map[string]catalog.Ref, len(keys))
	err := t.query("SELECT id, key, kind, class, revision, generation FROM object WHERE key = ANY($1::text[]) ORDER BY key FOR UPDATE", func(scan scanFunc) error {
		var id int64
		var r catalog.Ref
		err := scan(&id, &r.Key, (*string)(&r.Kind), (*string)(&r.Class), &r.Revision, &r.Generation)
		out[r.Key], have[r.Key] = id, r
		return err
	}, keys)
	if err != nil {
		return nil, err
	}
	if len(out) != len(keys) {
		return nil, fmt.Errorf("%w: %d of %d objects", errMoved, len(out), len(keys))
	}
	for i := range created { // one key has one kind, class, revision and generation for ever
		want, stood := &created[i], have[created[i].Key]
		if stood.Kind != want.Kind || stood.Class != want.Class || stood.Revision != want.Revision || stood.Generation != want.Generation {
			return nil, catalog.Conflict("object", want.Key, []any{want.Kind, want.Class, want.Revision, want.Generation},
				[]any{string(stood.Kind), string(stood.Class), int64(stood.Revision), int64(stood.Generation)})
		}
	}
	return out, nil
}

// createObjects queues the rows of objects that have none yet.
func (t *tx) createObjects(refs []catalog.Ref) {
	if len(refs) == 0 {
		return
	}
	n := len(refs)
	keys, kinds, classes := make([]string, n), make([]string, n), make([]string, n)
	revisions, generations := make([]int64, n), make([]int64, n)
	for i := range refs {
		r := &refs[i]
		keys[i], kinds[i], classes[i], revisions[i], generations[i] = r.Key, string(r.Kind), string(r.Class), int64(r.Revision), int64(r.Generation)
	}
	t.exec(`INSERT INTO object (key, kind, class, revision, generation)
 SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::int4[], $5::int8[]) ON CONFLICT (key) DO NOTHING`, keys, kinds, classes, revisions, generations)
}

// distinct is one ref of each key, in the order of the keys.
func distinct(refs []catalog.Ref) []catalog.Ref {
	out := slices.Clone(refs)
	slices.SortStableFunc(out, func(a, b catalog.Ref) int { return cmp.Compare(a.Key, b.Key) })
	return slices.CompactFunc(out, func(a, b catalog.Ref) bool { return a.Key == b.Key })
}

// dropObjects queues the end of those of the refs' objects, all locked, that no ref names
// any more; dropped has their keys when the queue was sent.
func (t *tx) dropObjects(refs []catalog.Ref) (dropped map[string]bool) {
	dropped = map[string]bool{}
	t.ask(`DELETE FROM object o WHERE o.key = ANY($1::text[]) AND NOT EXISTS (SELECT 1 FROM ref r WHERE r.object = o.id) RETURNING o.key`, func(scan scanFunc) error {
		var key string
		err := scan(&key)
		dropped[key] = true
		return err
	}, keysOf(refs, func(*catalog.Ref) bool { return true }))
	return dropped
}

// keysOf lists the distinct keys of the refs that pick takes, in first-seen order.
func keysOf(refs []catalog.Ref, pick func(*catalog.Ref) bool) []string {
	seen := map[string]bool{}
	keys := []string{}
	for i := range refs {
		if r := &refs[i]; pick(r) && !seen[r.Key] {
			seen[r.Key] = true
			keys = append(keys, r.Key)
		}
	}
	return keys
}

func isSlot(r *catalog.Ref) bool { return r.Kind == catalog.RefSlot }

func plainRefs(live []catalog.LiveRef) []catalog.Ref {
	out := make([]catalog.Ref, len(live))
	for i := range live {
		out[i] = live[i].Ref
	}
	return out
}

// pageOf cuts the one row more that was asked for.
func pageOf(live []catalog.LiveRef, n int) (refs []catalog.Ref, more bool) {
	more = len(live) > n
	return plainRefs(live[:min(n, len(live))]), more
}

// askKinds stops a deleting verb if any ref's object has a kind that this build does not
// know (K16).
func (t *tx) askKinds(verb string) {
	t.ask("SELECT kind, key FROM object WHERE kind <> 'slot' AND kind <> 'stream' AND kind <> 'pack' AND kind <> 'lost' LIMIT 1", func(scan scanFunc) error {
		var kind, key string
		if err := scan(&kind, &key); err != nil {
			return err
		}
		return catalog.ErrUnknownKind(verb, catalog.RefKind(kind), key)
	})
}

// askNamed counts the refs that name a key.
func (t *tx) askNamed(key string) *int {
	n := new(int)
	t.askOne("SELECT count(*) FROM object o JOIN ref r ON r.object = o.id WHERE o.key = $1", []any{key}, nil, n)
	return n
}
