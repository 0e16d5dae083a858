package reap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

const (
	// foldMin records are worth a snapshot: below it, reading them is as cheap.
	foldMin = 64
	// foldStreams bounds a snapshot, and with it memory: about 200 B a stream.
	foldStreams = 200_000
	// trimMax bounds the bytes of one record.
	trimMax = 64 << 20
)

// FoldReport is one look at a chain's trim journal.
type FoldReport struct {
	Records int
	Folded  int // records that a new snapshot says
	Deleted int // records that a snapshot replaced a grace ago
}

// trimRecordAt is a record as it stands in the bucket.
type trimRecordAt struct {
	key      string
	modified time.Time
	rec      *segment.TrimRecord
}

// Fold keeps a chain's trim journal short: many records become one snapshot that
// says all that they said, and one grace later they go. A snapshot takes the number
// right behind the records that it was made from, created once: should a walk have taken
// that number meanwhile, its record is not in the snapshot, and there is none this time.
func (t *Trimmer) Fold(ctx context.Context, chain segment.Chain) (FoldReport, error) {
	var r FoldReport
	at, err := t.placeOf(ctx, chain)
	if err != nil {
		return r, err
	}
	old, err := t.graceAgo(ctx)
	if err != nil {
		return r, err
	}
	records, err := readJournal(ctx, at.set.First(), chain)
	if err != nil {
		return r, fmt.Errorf("trim journal of %s: %w", chain, err)
	}
	r.Records = len(records)
	if len(records) == 0 {
		return r, nil
	}
	if err := CheckHead(ctx, at.set.First(), t.cat, chain); err != nil {
		return r, err
	}
	replaced, snapshot := planFold(records, old)
	if r.Deleted, err = t.deleteRecords(ctx, at, replaced); err != nil {
		return r, err
	}
	if snapshot == nil {
		return r, nil
	}
	written, err := t.putSnapshot(ctx, at.set.First(), chain, snapshot)
	if written {
		r.Folded = len(records) - len(replaced)
	}
	return r, err
}

// readJournal reads every record of a chain, in order. A listing or a read that
// failed ends it: nothing is decided on a part.
func readJournal(ctx context.Context, store *objstore.Store, chain segment.Chain) ([]trimRecordAt, error) {
	var out []trimRecordAt
	for info, err := range store.List(ctx, segment.TrimPrefix(chain), "") {
		if err != nil {
			return nil, err
		}
		k, err := segment.ParseKey(info.Key)
		if err != nil || k.Kind != segment.KeyTrim || k.Chain != chain {
			continue // of unknown shape: the sweep reports it
		}
		body, _, err := store.ReadAll(ctx, info.Key, trimMax)
		if err != nil {
			return nil, err
		}
		rec, err := segment.DecodeTrim(body)
		if err == nil && (rec.N != k.N || rec.Chain() != chain) {
			err = &segment.CorruptionError{File: info.Key, Reason: fmt.Sprintf("it says that it is record %d of chain %s", rec.N, rec.Chain())}
		}
		if err != nil {
			return nil, segment.InFile(err, info.Key, 0)
		}
		out = append(out, trimRecordAt{info.Key, info.Modified, rec})
	}
	slices.SortFunc(out, func(a, b trimRecordAt) int { return cmp.Compare(a.rec.N, b.rec.N) })
	return out, nil
}

// planFold is pure. replaced are the records before the newest snapshot that is
// older than a grace; snapshot is what to write now, nil if there is nothing to gain.
func planFold(records []trimRecordAt, old time.Time) (replaced []string, snapshot *segment.TrimRecord) {
	newest, standing := -1, -1
	for i := range records {
		if !records[i].rec.Snapshot {
			continue
		}
		newest = i
		if records[i].modified.Before(old) {
			standing = i
		}
	}
	for i := range max(standing, 0) {
		// A walk that stalled for longer than a grace can put a record under a number
		// that was replaced and forgotten: the snapshot does not say it, the next one will.
		if !records[i].modified.After(records[standing].modified) {
			replaced = append(replaced, records[i].key)
		}
	}
	if len(records)-newest-1 < foldMin {
		return replaced, nil
	}
	streams := map[string]segment.StreamTrim{}
	for _, at := range records {
		for _, s := range at.rec.Streams {
			if have, ok := streams[s.Name]; !ok || !s.LiveFrom.Less(have.LiveFrom) {
				streams[s.Name] = s
			}
		}
	}
	if len(streams) > foldStreams {
		return replaced, nil
	}
	last := records[len(records)-1].rec
	snapshot = &segment.TrimRecord{Epoch: last.Epoch, Shard: last.Shard, N: last.N + 1, Snapshot: true}
	for _, s := range streams {
		snapshot.Streams = append(snapshot.Streams, s)
	}
	return replaced, snapshot
}

func (t *Trimmer) deleteRecords(ctx context.Context, at place, keys []string) (int, error) {
	if len(keys) == 0 || t.del.Dry() {
		for _, key := range keys {
			t.del.WouldGo(at.class, key, "a snapshot of the trim journal replaced it a grace ago")
		}
		return 0, nil
	}
	results, err := t.del.TrimRecords(ctx, at.class, keys)
	gone := 0
	for _, res := range results {
		if res.Err == nil {
			gone++
		}
	}
	return gone, errors.Join(err, failures(results))
}

// putSnapshot creates the snapshot at its number, or not at all.
func (t *Trimmer) putSnapshot(ctx context.Context, store *objstore.Store, chain segment.Chain, snapshot *segment.TrimRecord) (written bool, err error) {
	if t.del.Dry() {
		return false, nil
	}
	row, err := t.cat.Chain(ctx, chain)
	if err != nil {
		return false, err
	}
	if row.TrimJournal > snapshot.N {
		return false, nil // a walk is past it: its record may be on its way
	}
	body, err := segment.EncodeTrim(snapshot)
	if err != nil {
		return false, err
	}
	_, err = store.PutOnce(ctx, segment.TrimKey(chain, snapshot.N), body, nil)
	if errors.Is(err, objstore.ErrExists) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Crash here: the snapshot stands under a number that the row calls free, as any
	// record may; the next walk moves past it.
	err = t.cat.AdvanceJournal(ctx, chain, snapshot.N)
	if errors.Is(err, catalog.ErrConflict) {
		err = nil
	}
	return true, err
}
