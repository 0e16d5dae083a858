package reap

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/orphan"
	"github.com/strandline/strandline/segment"
)

// headTries bounds the race of auditors over one head.
const headTries = 8

// HeadStore is what the head needs of a bucket; *objstore.Store is one.
type HeadStore interface {
	ReadAll(ctx context.Context, key string, limit int64) ([]byte, objstore.Info, error)
	Head(ctx context.Context, key string) (objstore.Info, error)
	PutIfMatch(ctx context.Context, key string, body []byte, etag string) (objstore.Info, error)
}

// HeadCatalog is the row that a head is held against.
type HeadCatalog interface {
	Chain(ctx context.Context, c segment.Chain) (catalog.ChainRow, error)
}

// readHead returns the head that stands and its ETag; nil and "" if none does.
func readHead(ctx context.Context, store HeadStore, chain segment.Chain) (*segment.Head, string, error) {
	key := segment.HeadKey(chain)
	body, info, err := store.ReadAll(ctx, key, segment.MaxHeadBytes)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read head: %w", err)
	}
	head, err := segment.DecodeHead(body)
	if err != nil {
		return nil, "", fmt.Errorf("read head: %w", segment.InFile(err, key, 0))
	}
	return head, info.ETag, nil
}

// WriteHead brings the chain's head up to its row. The head never goes back: it is
// read first and the row after it, so a row that is behind was rolled back; and it
// is replaced only if it still is what was read. A head that is up to date is left.
// written is the store's clock at a write of ours, zero if there was none to do.
func WriteHead(ctx context.Context, store HeadStore, cat HeadCatalog, chain segment.Chain) (written time.Time, err error) {
	return writeHead(ctx, store, cat, chain, nil)
}

// seenHead is a head that was read, and its ETag.
type seenHead struct {
	head *segment.Head // nil: none stands
	etag string
}

// writeHead is WriteHead through the gate of del. Where any chain's row is behind its head, the
// newest copy of the catalog is to come back, and would be behind a head that was brought up to
// the rows of the older one meanwhile: for ever, since a head never goes back. The row is read
// in the session that the gate looked at, so a fail-over before that read refuses it, and one
// behind it finds in the head what the newest copy has.
func (p place) writeHead(ctx context.Context, del *orphan.Deleter, cat HeadCatalog, seen *seenHead) (written time.Time, err error) {
	err = del.Through(ctx, func(ctx context.Context) error {
		written, err = writeHead(ctx, p.set.First(), cat, p.chain, seen)
		return err
	})
	return written, err
}

// writeHead begins from a head that the caller read before, if seen is not nil: should it
// have been replaced since, the write is lost and the head read again.
func writeHead(ctx context.Context, store HeadStore, cat HeadCatalog, chain segment.Chain, seen *seenHead) (written time.Time, err error) {
	var last error
	for range headTries {
		if seen == nil {
			head, etag, err := readHead(ctx, store, chain)
			if err != nil {
				return time.Time{}, err
			}
			seen = &seenHead{head, etag}
		}
		head, etag := seen.head, seen.etag
		seen = nil
		row, err := cat.Chain(ctx, chain)
		if err != nil {
			return time.Time{}, err
		}
		if err := checkRollback(head, &row); err != nil {
			return time.Time{}, err
		}
		next := headOf(&row)
		if head != nil && sameHead(head, next) {
			return time.Time{}, nil
		}
		written, err := putHead(ctx, store, chain, next, etag)
		if err == nil || !lostRace(err) {
			return written, err
		}
		last = err
	}
	return time.Time{}, fmt.Errorf("write head of %s, %d times in vain: %w", chain, headTries, last)
}

// putHead replaces the head whose ETag was read, or creates it.
func putHead(ctx context.Context, store HeadStore, chain segment.Chain, next *segment.Head, etag string) (time.Time, error) {
	next.Nonce = uuid.NewString()
	body, err := segment.EncodeHead(next)
	if err != nil {
		return time.Time{}, err
	}
	// Crash here, or a lost answer: the next look reads what stands and decides anew.
	info, err := store.PutIfMatch(ctx, segment.HeadKey(chain), body, etag)
	if err != nil {
		return time.Time{}, fmt.Errorf("write head of %s: %w", chain, err)
	}
	if info.Modified.IsZero() { // S3 says it on a HEAD only
		if info, err = store.Head(ctx, segment.HeadKey(chain)); err != nil {
			return time.Time{}, nil //nolint:nilerr // the head stands; its time is a by-product
		}
	}
	return info.Modified, nil
}

func lostRace(err error) bool {
	return errors.Is(err, objstore.ErrPrecondition) || errors.Is(err, objstore.ErrExists) || errors.Is(err, objstore.ErrAmbiguous)
}

// headOf is the row as the head records it.
func headOf(row *catalog.ChainRow) *segment.Head {
	consumers := slices.SortedFunc(slices.Values(row.Consumers), func(a, b segment.Consumer) int { return strings.Compare(a.Name, b.Name) })
	return &segment.Head{
		Epoch: row.Epoch, Shard: row.Shard, Term: row.Term, AbsorbedEnd: row.AbsorbedEnd, NextSeq: row.NextSeq,
		LastUUID: row.LastUUID, WatermarkSeq: row.WatermarkSeq, WatermarkSegment: row.WatermarkSegment,
		Condemned: row.Condemned, Trimmed: row.Trimmed, Consumers: consumers,
	}
}

// sameHead says whether two heads differ in nothing but the write's nonce.
func sameHead(a, b *segment.Head) bool {
	x, y := *a, *b
	x.Consumers, y.Consumers, x.Nonce, y.Nonce, x.Version, y.Version = nil, nil, "", "", 0, 0
	return reflect.DeepEqual(x, y) && slices.EqualFunc(a.Consumers, b.Consumers, func(a, b segment.Consumer) bool { return a == b })
}
