package objstore_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
)

// hangs never answers, and reads bodies a little at a time.
type hangs struct {
	*memstore.Driver
	size int64
}

func (h hangs) Head(ctx context.Context, _ string) (objstore.Info, error) {
	<-ctx.Done()
	return objstore.Info{}, &objstore.Error{Op: "head", Kind: objstore.ErrUnavailable, Err: ctx.Err()}
}

func (h hangs) Put(ctx context.Context, _ string, _ io.ReadSeeker, _ int64, _ objstore.PutOptions) (objstore.Info, error) {
	<-ctx.Done()
	return objstore.Info{}, &objstore.Error{Op: "put", Kind: objstore.ErrAmbiguous, Err: ctx.Err()}
}

func (h hangs) Get(_ context.Context, key string, r objstore.Range, _ string) (io.ReadCloser, objstore.Info, error) {
	time.Sleep(time.Second)
	piece := bytes.NewReader(make([]byte, min(300<<10, r.Length))) // enough that attempts are counted anew
	return io.NopCloser(piece), objstore.Info{Key: key, Size: h.size, ETag: "e"}, nil
}

// TestTotalTimeout: a call ends although its ctx has no deadline, and is told apart
// from one that the caller ended.
func TestTotalTimeout(t *testing.T) {
	const total = 3 * time.Minute
	for name, c := range map[string]struct {
		call func(context.Context, *objstore.Store) error
		want error
	}{
		"head": {func(ctx context.Context, s *objstore.Store) error {
			_, err := s.Head(ctx, "k")
			return err
		}, objstore.ErrUnavailable},
		"put": {func(ctx context.Context, s *objstore.Store) error {
			_, err := s.PutOnce(ctx, "k", nil, nil)
			return err
		}, objstore.ErrAmbiguous},
		"a trickle": {func(ctx context.Context, s *objstore.Store) error {
			_, _, err := s.ReadRange(ctx, "k", 0, 64<<20)
			return err
		}, objstore.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := objstore.New(hangs{memstore.New(memstore.Options{}), 1 << 30}, objstore.Config{Attempts: 1 << 20, TotalTimeout: total})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				err = c.call(t.Context(), s)
				wantKind(t, err, c.want)
				if took := time.Since(start); took < total-objstore.MaxBackoff || took > total+2*time.Second {
					t.Errorf("ended after %v, want %v: %v", took, total, err)
				}
			})
		})
	}
	_, err := objstore.New(memstore.New(memstore.Options{}), objstore.Config{CallTimeout: time.Minute, TotalTimeout: time.Second})
	wantKind(t, err, objstore.ErrInvalid)
}
