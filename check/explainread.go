package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// rowObject gathers the facts of the object, finds the row's chunk, and reads it if asked.
func (x *Explainer) rowObject(ctx context.Context, f *RowFacts, q *RowQuestion) (err error) {
	if f.Ref == nil || f.Ref.Key == "" {
		return nil
	}
	if f.Object, err = x.gather(ctx, f.Ref.Key); err != nil {
		return err
	}
	for _, store := range x.bucketsOf(f.Object) {
		o, err := readObject(ctx, store, f.Ref.Key)
		if errors.Is(err, objstore.ErrNotFound) || unsound(err) || refused(err) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return err
		}
		for i := range o.footer.Chunks {
			c := &o.footer.Chunks[i]
			if c.Stream == f.Stream && c.Epoch == f.Epoch && c.First <= f.Seq && f.Seq <= c.Last {
				f.Chunk = &ChunkFact{Bucket: store.Name(), Offset: c.Offset, Stored: c.Stored, Raw: c.Raw, Codec: c.Codec.String(), First: c.First, Last: c.Last, chunk: *c}
			}
		}
		break
	}
	if f.Chunk == nil || !q.Read {
		return nil
	}
	return x.readRow(ctx, f)
}

// bucketsOf are the buckets that have an object, in their order.
func (x *Explainer) bucketsOf(f *KeyFacts) (stores []*objstore.Store) {
	for _, c := range f.Copies {
		for _, s := range x.Classes[c.Class] {
			if c.Exists && s.Name() == c.Bucket {
				stores = append(stores, s)
				break
			}
		}
	}
	return stores
}

// readRow decodes the chunk, from the first bucket that has it whole.
func (x *Explainer) readRow(ctx context.Context, f *RowFacts) error {
	var broken []string
	anyUnread := false
	for _, store := range x.bucketsOf(f.Object) {
		read, err := readChunk(ctx, store, f)
		if err == nil {
			read.Bucket, f.Read = store.Name(), read
			return nil
		}
		unread := refused(err) && ctx.Err() == nil
		if !errors.Is(err, objstore.ErrNotFound) && !unsound(err) && !unread {
			return fmt.Errorf("read %s: %w", f.Ref.Key, err)
		}
		anyUnread = anyUnread || unread
		broken = append(broken, fmt.Sprintf("%s: %v", store.Name(), err))
	}
	f.Read = &ReadFact{Broken: strings.Join(broken, "; "), Unread: anyUnread}
	return nil
}

// readChunk reads it, and once more if its bytes are wrong.
func readChunk(ctx context.Context, store *objstore.Store, f *RowFacts) (read *ReadFact, err error) {
	c := &f.Chunk.chunk
	for look := 1; look <= 2; look++ {
		var body []byte
		if body, _, err = store.ReadRange(ctx, f.Ref.Key, c.Offset, c.Stored); err == nil {
			read, err = findRow(c, body, f.Seq)
		}
		if !unsound(err) {
			break
		}
	}
	return read, err
}

func findRow(c *segment.Chunk, stored []byte, seq segment.Seq) (*ReadFact, error) {
	raw, err := segment.DecodeChunk(c, stored)
	if err != nil {
		return nil, err
	}
	read := &ReadFact{}
	for batch, err := range segment.Frames(raw) {
		if err != nil {
			return nil, err
		}
		for i := range batch.Rows {
			read.Rows++
			if row := &batch.Rows[i]; row.Seq == seq {
				read.Found, read.Time, read.Txn, read.Payload = true, time.Unix(0, row.Time).UTC(), string(row.Txn), len(row.Payload)
			}
		}
	}
	return read, nil
}
