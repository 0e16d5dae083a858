package sqlite

import (
	"strings"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/catalog/internal/column"
)

// refsPerInsert: rows per statement. 50 measured 1.5 times one by one; more bring
// nothing.
const refsPerInsert = 50

const refValues = "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"

// insertRefs inserts refs, which come sorted by key, many a statement.
func (t *tx) insertRefs(refs []catalog.Ref, object func(*catalog.Ref) int64) error {
	args := make([]any, 0, refsPerInsert*20)
	for len(refs) > 0 {
		n := min(len(refs), refsPerInsert)
		args = args[:0]
		for i := range refs[:n] {
			args = appendRef(args, &refs[i], object(&refs[i]))
		}
		// FAIL, not the default ABORT: the verb is rolled back as a whole, and SQLite need
		// not keep every page as it was before each statement.
		q := "INSERT OR FAIL INTO ref VALUES " + refValues + strings.Repeat(","+refValues, n-1)
		if err := t.exec(q, args...); err != nil {
			return err
		}
		refs = refs[n:]
	}
	return nil
}

func appendRef(args []any, r *catalog.Ref, object int64) []any {
	return append(args, r.StreamID, int64(r.Epoch), int64(r.First), int64(r.Last),
		int64(r.Shard), int64(r.PrevLast.Epoch), int64(r.PrevLast.Seq), object,
		int64(r.Chunks), r.Offset, r.Stored, r.Raw,
		int64(r.Codec), int64(r.CRC), int64(r.Sum),
		int64(r.Rows), int64(r.RowSum), r.Bytes, r.MinTime, r.MaxTime)
}

// object returns the number under which refs name this ref's object. One key has
// one kind, class, revision and generation for ever.
func (t *tx) object(r *catalog.Ref) (int64, error) {
	const q = "SELECT id, kind, class, revision, generation FROM object WHERE key = ?"
	var id, revision, generation int64
	var kind, class string
	found, err := t.one(q, []any{r.Key}, &id, &kind, &class, &revision, &generation)
	if err != nil {
		return 0, err
	}
	if !found {
		if err := t.exec("INSERT INTO object (key, kind, class, revision, generation) VALUES (?, ?, ?, ?, ?)",
			r.Key, string(r.Kind), string(r.Class), r.Revision, r.Generation); err != nil {
			return 0, err
		}
		_, err = t.one(q, []any{r.Key}, &id, &kind, &class, &revision, &generation)
		return id, err
	}
	if kind != string(r.Kind) || class != string(r.Class) || revision != int64(r.Revision) || generation != int64(r.Generation) {
		return 0, catalog.Conflict("object", r.Key, []any{r.Kind, r.Class, r.Revision, r.Generation}, []any{kind, class, revision, generation})
	}
	return id, nil
}

func idsOf(refs []catalog.Ref) (string, error) {
	ids := make([]column.RefID, len(refs))
	for i := range refs {
		ids[i] = column.IDOf(&refs[i])
	}
	return column.JSON(ids)
}

// standing reads those of the refs that stand, whatever they look like now.
func (t *tx) standing(refs []catalog.Ref) (column.Standing, error) {
	set, err := idsOf(refs)
	if err != nil {
		return nil, err
	}
	have, err := t.refs("SELECT "+refCols+` FROM json_each(?) j
 CROSS JOIN ref r ON r.stream = j.value ->> 0 AND r.epoch = j.value ->> 1 AND r.first = j.value ->> 2`+refJoins, set)
	if err != nil {
		return nil, err
	}
	out := make(column.Standing, len(have))
	for _, l := range have {
		out[column.IDOf(&l.Ref)] = l
	}
	return out, nil
}

// deleteRefs deletes refs that were seen in this transaction, and the rows of
// objects that nothing names any more.
func (t *tx) deleteRefs(refs []catalog.Ref) error {
	set, err := idsOf(refs)
	if err != nil {
		return err
	}
	// Key, revision and last were compared with what the caller saw, in this same
	// transaction: nobody else writes until it ends.
	return t.exec("DELETE FROM ref WHERE (stream, epoch, first) IN (SELECT j.value ->> 0, j.value ->> 1, j.value ->> 2 FROM json_each(?) j)", set)
}

// dropObjects forgets those of the refs' objects that no ref names any more.
func (t *tx) dropObjects(refs []catalog.Ref) error {
	set, err := column.JSON(catalog.KeysOf(refs, nil))
	if err != nil {
		return err
	}
	return t.exec(`DELETE FROM object WHERE key IN (SELECT value FROM json_each(?))
 AND NOT EXISTS (SELECT 1 FROM ref r WHERE r.object = object.id)`, set)
}
