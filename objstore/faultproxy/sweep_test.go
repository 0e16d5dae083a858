//go:build unix

package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// form is how a swept request fails.
type form struct {
	name   string
	fault  Fault
	outage bool // all later requests fail too, until the next run
}

var forms = []form{
	{"not applied", Reset{}, false},
	{"applied, error seen", DropAnswer{}, false},
	{"outage, not applied", Reset{}, true},
	{"outage, applied", DropAnswer{}, true},
}

// TestSweep publishes a slot and settles it, with the first request failing, then the
// second, and so on until a run meets no fault. A single failure is absorbed. In an
// outage the run ends with an error, and the next one, which knows only what a run
// recorded of its uploads, brings the bucket to the same end. After each step of each run
// the bucket is consistent.
func TestSweep(t *testing.T) {
	diagonal(t, func(t *testing.T, c *cell) {
		for _, f := range forms {
			t.Run(f.name, func(t *testing.T) {
				for i := 1; ; i++ {
					if !c.sweepOnce(t, f, i) {
						if i < 10 {
							t.Fatalf("only %d requests were swept", i-1)
						}
						t.Logf("each of %d requests failed once", i-1)
						break
					}
				}
			})
		}
	})
}

// sweepOnce makes run i; false if no request was left to fail.
func (c *cell) sweepOnce(t *testing.T, f form, i int) bool {
	t.Helper()
	rule := &Rule{Name: f.name, When: Nth(i), Fault: f.fault}
	if f.outage {
		rule.When = func(seen int) bool { return seen >= i }
	}
	c.proxy.Clear()
	c.proxy.Add(rule)
	j := &job{c: c, prefix: fmt.Sprintf("sweep-%d-%d/", slices.IndexFunc(forms, func(g form) bool { return g.name == f.name }), i)}
	err := j.run(t)
	hit := c.proxy.Hits(rule) > 0
	c.proxy.Clear()
	if err != nil && !f.outage {
		t.Fatalf("request %d: a single failure came through: %v", i, err)
	}
	if err != nil && !is(err, objstore.ErrAmbiguous, objstore.ErrUnavailable) {
		t.Fatalf("request %d: %v", i, err)
	}
	if err != nil {
		if err := j.run(t); err != nil {
			t.Fatalf("request %d, the run after: %v", i, err)
		}
	}
	j.consistent(t)
	j.ended(t, f)
	return hit
}

// job is a slot's way: published, settled beside a part of itself, its head replaced,
// listed and deleted. What it holds is on the auditor's disk or in the catalog, and
// outlives a run.
type job struct {
	c       *cell
	prefix  string
	uploads []string // recorded before the first part, dropped when done
	deleted bool     // the head says that the slot may go: as a catalog's watermark
}

var (
	slotBody = noise(50, partSize+3000)
	settled  = slices.Concat([]byte("header"), slotBody[:partSize+1000], []byte("footer"))
)

func (j *job) slot() string   { return j.prefix + "transit/1" }
func (j *job) output() string { return j.prefix + "settled/1" }
func (j *job) head() string   { return j.prefix + "rw/head" }

// run does what is left to do, as a process does that has just started.
func (j *job) run(t *testing.T) error {
	t.Helper()
	s := j.c.store(t, nil)
	for _, step := range []func(context.Context, *objstore.Store) error{j.sweep, j.publish, j.settle, j.advance, j.reclaim} {
		if err := step(t.Context(), s); err != nil {
			return err
		}
		j.consistent(t)
	}
	return nil
}

// sweep aborts the uploads of an earlier run.
func (j *job) sweep(ctx context.Context, s *objstore.Store) error {
	for len(j.uploads) > 0 {
		if err := s.Abort(ctx, j.output(), j.uploads[0]); err != nil {
			return err
		}
		j.uploads = j.uploads[1:]
	}
	return nil
}

func (j *job) publish(ctx context.Context, s *objstore.Store) error {
	if j.deleted {
		return nil // never again under this key
	}
	_, err := s.PutOnce(ctx, j.slot(), slotBody, nil)
	if errors.Is(err, objstore.ErrExists) { // an earlier run's
		return nil
	}
	return err
}

func (j *job) settle(ctx context.Context, s *objstore.Store) error {
	if j.deleted {
		return nil
	}
	tail, info, err := s.ReadSuffix(ctx, j.slot(), 100)
	if err != nil {
		return err
	}
	if !bytes.Equal(tail, slotBody[len(slotBody)-100:]) {
		return errors.New("the slot's footer differs")
	}
	w := s.NewWriter(ctx, j.output(), objstore.UploadOptions{
		OnCreate: func(id string) error { j.uploads = append(j.uploads, id); return nil },
		OnDone: func(id string) {
			j.uploads = slices.DeleteFunc(j.uploads, func(s string) bool { return s == id })
		},
	})
	_, err = w.Write(settled[:6])
	if err == nil {
		err = w.CopyRange(objstore.CopySource{Key: j.slot(), ETag: info.ETag, Offset: 0, Length: partSize + 1000})
	}
	if err == nil {
		_, err = w.Write(settled[len(settled)-6:])
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	if _, err = w.Commit(); errors.Is(err, objstore.ErrExists) {
		return nil // an earlier run's
	}
	return err
}

// advance says in the head that the slot may go. A lost outcome is read back by whoever
// comes next.
func (j *job) advance(ctx context.Context, s *objstore.Store) error {
	etag := ""
	got, info, err := s.ReadAll(ctx, j.head(), 100)
	switch {
	case err == nil && bytes.HasPrefix(got, []byte("trimmed 1")):
		j.deleted = true
		return nil
	case err == nil:
		etag = info.ETag
	case !errors.Is(err, objstore.ErrNotFound):
		return err
	}
	if etag == "" {
		if info, err = s.PutIfMatch(ctx, j.head(), []byte("trimmed 0"), ""); err != nil {
			return err
		}
		etag = info.ETag
	}
	if _, err = s.PutIfMatch(ctx, j.head(), []byte("trimmed 1"), etag); err == nil {
		j.deleted = true
	}
	return err
}

func (j *job) reclaim(ctx context.Context, s *objstore.Store) error {
	var doomed []string
	for info, err := range s.List(ctx, j.prefix+"transit/", "") {
		if err != nil {
			return err
		}
		doomed = append(doomed, info.Key)
	}
	results, err := s.Delete(ctx, doomed)
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	return err
}

// consistent holds the bucket to what must be true after any step: every object of its
// whole length, and the rows in the slot or in the settled object.
func (j *job) consistent(t *testing.T) {
	t.Helper()
	slot, output := j.size(t, j.slot()), j.size(t, j.output())
	if (slot != 0 && slot != len(slotBody)) || (output != 0 && output != len(settled)) {
		t.Fatalf("slot of %d bytes, settled object of %d: not what was written", slot, output)
	}
	head := string(j.c.stands(t, j.head()))
	if head != "" && output == 0 {
		t.Fatal("the head is ahead of the settled object")
	}
	if head != "trimmed 1" && (j.deleted || (slot == 0 && output != 0)) {
		t.Fatal("the slot is gone before the head says so")
	}
}

// size is an object's length; 0: nothing stands.
func (j *job) size(t *testing.T, key string) int {
	t.Helper()
	info, err := j.c.past(t).Head(t.Context(), key)
	if err != nil && !errors.Is(err, objstore.ErrNotFound) {
		t.Fatal(err)
	}
	return int(info.Size)
}

// ended holds the bucket to what must be true in the end: the settled object, the head,
// nothing else, and no upload but those that no run could know of, which an abort ends.
func (j *job) ended(t *testing.T, f form) {
	t.Helper()
	var keys []string
	for info, err := range j.c.past(t).List(t.Context(), j.prefix, "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, strings.TrimPrefix(info.Key, j.prefix))
	}
	j.c.holds(t, j.output(), settled)
	if !slices.Equal(keys, []string{"rw/head", "settled/1"}) || len(j.uploads) > 0 {
		t.Fatalf("the bucket holds %q, and uploads %q are recorded", keys, j.uploads)
	}
	allowed := 0
	if f.fault == (DropAnswer{}) {
		allowed = objstore.DefaultAttempts // created, and the answer lost
	}
	if f.outage {
		allowed++ // a part that was in flight may land after the abort
	}
	left := j.c.uploads(t, j.output())
	if len(left) > allowed {
		t.Fatalf("uploads left: %v", left)
	}
	for _, u := range left {
		if err := j.c.past(t).Abort(t.Context(), u.Key, u.ID); err != nil {
			t.Fatal(err)
		}
	}
	if left := j.c.uploads(t, j.output()); len(left) > 0 {
		t.Fatalf("uploads left after an abort: %v", left)
	}
}
