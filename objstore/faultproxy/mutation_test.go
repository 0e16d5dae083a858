//go:build unix

package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// mutation is one of the calls by which Strandline changes a bucket, and the request
// that decides it.
type mutation struct {
	name string
	op   objstore.Op
	// prepare puts the bucket past the proxy into the state before, and gives what the
	// call must know of it.
	prepare func(t *testing.T, c *cell, key string) (known string)
	// do makes the call, by a writer who writes body.
	do func(ctx context.Context, s *objstore.Store, key, known string, body []byte) error
	// lost is what a call is told whose competitor came first, for certain.
	lost error
	// size of bodies
	size int
}

var (
	before = []byte("before")

	putOnce = mutation{
		name: "PutOnce", op: objstore.OpPut, prepare: nothing, lost: objstore.ErrExists, size: 2000,
		do: func(ctx context.Context, s *objstore.Store, key, _ string, body []byte) error {
			_, err := s.PutOnce(ctx, key, body, nil)
			return err
		},
	}
	compareAndSet = mutation{
		name: "PutIfMatch", op: objstore.OpPut, lost: objstore.ErrPrecondition, size: 2000,
		prepare: func(t *testing.T, c *cell, key string) string {
			info, err := c.past(t).PutOnce(t.Context(), key, before, nil)
			if err != nil {
				t.Fatal(err)
			}
			return info.ETag
		},
		do: func(ctx context.Context, s *objstore.Store, key, known string, body []byte) error {
			_, err := s.PutIfMatch(ctx, key, body, known)
			return err
		},
	}
	commit = mutation{
		name: "Commit", op: objstore.OpComplete, prepare: nothing, lost: objstore.ErrExists, size: partSize + 2000,
		do: func(ctx context.Context, s *objstore.Store, key, _ string, body []byte) error {
			w := s.NewWriter(ctx, key, objstore.UploadOptions{})
			if _, err := w.Write(body); err != nil {
				return errors.Join(err, w.Abort())
			}
			_, err := w.Commit()
			return err
		},
	}
	remove = mutation{
		name: "Delete", op: objstore.OpDelete, size: 0,
		prepare: func(t *testing.T, c *cell, key string) string {
			if _, err := c.past(t).PutOnce(t.Context(), key, before, nil); err != nil {
				t.Fatal(err)
			}
			return ""
		},
		do: func(ctx context.Context, s *objstore.Store, key, _ string, _ []byte) error {
			results, err := s.Delete(ctx, []string{key})
			if err != nil {
				return err
			}
			return results[0].Err
		},
	}

	creates   = []mutation{putOnce, commit}
	publishes = []mutation{putOnce, compareAndSet, commit}
	mutations = []mutation{putOnce, compareAndSet, commit, remove}
)

func nothing(*testing.T, *cell, string) string { return "" }

// body is what a writer writes; nil for a delete, as stands tells absence.
func (m mutation) body(writer byte) []byte {
	if m.op == objstore.OpDelete {
		return nil
	}
	return noise(writer, m.size)
}

// untouched is what stands before the call.
func (m mutation) untouched() []byte {
	if m.op == objstore.OpDelete || errors.Is(m.lost, objstore.ErrPrecondition) {
		return before
	}
	return nil
}

// compete writes body past the proxy, as another writer does who sees what is there.
func (m mutation) compete(t *testing.T, c *cell, key string, body []byte) {
	t.Helper()
	s := c.past(t)
	known := ""
	if info, err := s.Head(t.Context(), key); err == nil {
		known = info.ETag
	}
	if _, err := s.PutIfMatch(t.Context(), key, body, known); err != nil {
		t.Fatal(err)
	}
}

// each runs f for every mutation, with a key of its own.
func each(t *testing.T, c *cell, list []mutation, f func(t *testing.T, m mutation, key string)) {
	for _, m := range list {
		t.Run(m.name, func(t *testing.T) { f(t, m, "m/"+m.name+"/"+string(bytes.ToLower([]byte(m.op)))) })
	}
}
