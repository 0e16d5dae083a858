package localtier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/strandline/strandline/absorb"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// parcel is a sealed segment on its way to a position.
type parcel struct {
	bundle *segment.Bundle
	meta   segment.SlotMeta
	id     segment.ID // position: the slot's key and footer say it
	key    string
	sealed time.Time
	fence  bool
	closed bool // the fence that ends the chain
}

// pack verifies a sealed segment file frame by frame and plans its slot.
func (s *shardLog) pack(r io.ReaderAt, size int64, id segment.ID, sealed time.Time) (parcel, error) {
	b, err := segment.PlanBundle(r, size)
	if err != nil {
		return parcel{}, err
	}
	slot := b.Identity()
	return parcel{bundle: b, meta: slot.Meta(), id: id, key: segment.SlotKey(s.chain, id), sealed: sealed}, nil
}

// occupiedError: another segment's slot stands at the position.
type occupiedError struct {
	key  string
	info objstore.Info
}

func (e *occupiedError) Error() string { return "another slot stands at " + e.key }

// errVanished: the position refused a slot as taken, and then nothing stood there.
// Whatever it was has been trimmed, so the chain is far ahead of this writer.
var errVanished = errors.New("the position was taken, and its slot is gone already")

// place is step 1 and the first look of step 2: put the slot create-once, and find
// out whose slot stands. nil: mine, by this or an earlier attempt. *occupiedError and
// errVanished are for the caller to judge. After anything else the outcome is open, and
// placing the same segment again is right.
func (s *shardLog) place(ctx context.Context, p parcel) (absorb.Standing, error) {
	info, footer, err := s.send(ctx, p)
	switch {
	case err == nil:
		return absorb.Standing{Key: p.key, Info: info, Footer: footer}, nil
	case errors.Is(err, objstore.ErrExists), errors.Is(err, objstore.ErrAmbiguous):
		return s.readBack(ctx, p, err)
	}
	return absorb.Standing{}, err
}

// send streams the bundle into a create-once write.
func (s *shardLog) send(ctx context.Context, p parcel) (objstore.Info, *segment.Footer, error) {
	w := s.bucket.Set.First().NewWriter(ctx, p.key, objstore.UploadOptions{
		Meta:           p.meta.Map(),
		OnCreate:       func(id string) error { return s.recordUpload(p.key, id) },
		OnDone:         s.forgetUpload,
		BeforeComplete: func(context.Context) error { return s.at(StepSent) },
	})
	footer, err := p.bundle.WriteTo(w, segment.BundleOptions{
		Object: uuid.New(), Created: s.now().UnixNano(), Writer: s.cfg.WriterVersion,
		Sealed: p.sealed.UnixNano(), ID: p.id, Fence: p.fence, Closed: p.closed,
	})
	if err != nil {
		return objstore.Info{}, nil, errors.Join(err, w.Abort())
	}
	info, err := w.Commit()
	if err != nil {
		return objstore.Info{}, nil, err
	}
	info.Key, info.Size, info.Meta = p.key, w.Size(), p.meta.Map()
	return info, footer, nil
}

// readBack asks what stands after a 412 or a lost answer (K31, K13). The HEAD's
// metadata proves whose rows stand there, whatever compressor wrote them.
func (s *shardLog) readBack(ctx context.Context, p parcel, cause error) (absorb.Standing, error) {
	info, err := s.bucket.Set.First().Head(ctx, p.key)
	switch {
	case errors.Is(err, objstore.ErrNotFound) && errors.Is(cause, objstore.ErrExists):
		return absorb.Standing{}, errVanished
	case err != nil:
		return absorb.Standing{}, fmt.Errorf("%w; reading back: %w", cause, err)
	}
	if meta, err := segment.ParseMeta(info.Meta); err != nil || meta != p.meta {
		return absorb.Standing{}, &occupiedError{key: p.key, info: info}
	}
	// Mine, but maybe not this attempt's bytes: offsets come from what stands.
	return absorb.Read(ctx, s.bucket, s.chain, p.id)
}

func (s *shardLog) newUUID() (segment.UUID, error) {
	if named := s.cfg.WAL.NewUUID; named != nil {
		return named(s.dir), nil
	}
	return uuid.NewV7()
}

// fenceParcel is a segment of SegmentStart and Seal only, in memory: it never
// becomes a local file, since nothing is appended to it.
func (s *shardLog) fenceParcel(id segment.ID, base segment.Seq, prev segment.UUID, consumers []segment.Consumer) (parcel, error) {
	u, err := s.newUUID()
	if err != nil {
		return parcel{}, fmt.Errorf("fence UUID: %w", err)
	}
	now := s.now()
	start := segment.Start{
		Chain: s.chain, ID: id, Base: base, Term: s.term, Prev: prev,
		Created: now.UnixNano(), Consumers: consumers,
	}
	_, start.Producers = s.carried.lists()
	file, err := fenceFile(u, &start)
	if err != nil {
		return parcel{}, err
	}
	p, err := s.pack(bytes.NewReader(file), int64(len(file)), id, now)
	p.fence = true
	return p, err
}
