package postgres

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
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

// scanRef reads refCols, and more columns after them.
func scanRef(scan column.Scan, more ...any) (catalog.LiveRef, error) {
	var name []byte
	l, err := column.Ref(scan, &name, more...)
	l.Stream = string(name)
	return l, err
}

func (t *tx) askRefs(out *[]catalog.LiveRef, q string, args ...any) {
	t.ask(q, func(scan column.Scan) error {
		l, err := scanRef(scan)
		*out = append(*out, l)
		return err
	}, args...)
}

// idsOf are the keys of refs as columns.
func idsOf(refs []catalog.Ref) (streams, epochs, firsts []int64) {
	streams, epochs, firsts = make([]int64, len(refs)), make([]int64, len(refs)), make([]int64, len(refs))
	for i := range refs {
		id := column.IDOf(&refs[i])
		streams[i], epochs[i], firsts[i] = id[0], id[1], id[2]
	}
	return streams, epochs, firsts
}

// askStanding reads those of the refs that stand, whatever they look like now. It takes
// no lock: deleteRefs finds out whether one moved since.
func (t *tx) askStanding(refs []catalog.Ref) column.Standing {
	out := make(column.Standing, len(refs))
	streams, epochs, firsts := idsOf(refs)
	t.ask("SELECT "+refCols+` FROM unnest($1::int8[], $2::int8[], $3::int8[]) j(stream, epoch, first)
 JOIN ref r ON r.stream = j.stream AND r.epoch = j.epoch AND r.first = j.first`+refJoins, func(scan column.Scan) error {
		l, err := scanRef(scan)
		out[column.IDOf(&l.Ref)] = l
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
	keys := catalog.KeysOf(slices.Concat(come, gone), nil)
	slices.Sort(keys)
	out := make(map[string]int64, len(keys))
	have := make(map[string]catalog.Ref, len(keys))
	err := t.query("SELECT id, key, kind, class, revision, generation FROM object WHERE key = ANY($1::text[]) ORDER BY key FOR UPDATE", func(scan column.Scan) error {
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
	t.ask(`DELETE FROM object o WHERE o.key = ANY($1::text[]) AND NOT EXISTS (SELECT 1 FROM ref r WHERE r.object = o.id) RETURNING o.key`, func(scan column.Scan) error {
		var key string
		err := scan(&key)
		dropped[key] = true
		return err
	}, catalog.KeysOf(refs, nil))
	return dropped
}

// askKinds stops a deleting verb if any ref's object has a kind that this build does not
// know (K16).
func (t *tx) askKinds(verb string) {
	t.ask("SELECT kind, key FROM object WHERE kind <> 'slot' AND kind <> 'stream' AND kind <> 'pack' AND kind <> 'lost' LIMIT 1", func(scan column.Scan) error {
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
