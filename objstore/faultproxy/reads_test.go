//go:build unix

package faultproxy

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// TestReadsUnderFaults: with one request in three struck, ranges, suffixes, whole
// objects and listings come whole and right.
func TestReadsUnderFaults(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		body := noise(9, 300_000)
		var keys []string
		for i := range 30 {
			keys = append(keys, fmt.Sprintf("r/%02d", i))
			if _, err := c.past(t).PutOnce(t.Context(), keys[i], body[:10_000*i], nil); err != nil {
				t.Fatal(err)
			}
		}
		c.proxy.SetStreak(4)
		rules := slices.DeleteFunc(share(5, 3), func(r *Rule) bool { return !slices.Contains(r.Ops, objstore.OpGet) })
		rules = append(rules, &Rule{Name: "cut far in", Ops: []objstore.Op{objstore.OpGet}, When: Share(77, 5), Fault: CutBody{After: 3000}})
		c.proxy.Add(rules...)
		s := c.store(t, nil)
		for i, key := range keys[1:] {
			c.readsRight(t, s, key, body[:10_000*(i+1)])
		}
		var listed []string
		for info, err := range s.List(t.Context(), "r/", "") {
			if err != nil {
				t.Fatal(err)
			}
			listed = append(listed, info.Key)
		}
		if !slices.Equal(listed, keys) {
			t.Errorf("listed %q", listed)
		}
		c.struck(t, rules, 20)
	})
}

func (c *cell) readsRight(t *testing.T, s *objstore.Store, key string, want []byte) {
	t.Helper()
	ctx := t.Context()
	check := func(what string, got, want []byte, info objstore.Info, err error) {
		t.Helper()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s of %s: %d bytes, size %d, %v", what, key, len(got), info.Size, err)
		}
	}
	got, info, err := s.ReadAll(ctx, key, 1<<20)
	check("all", got, want, info, err)
	got, info, err = s.ReadRange(ctx, key, 100, 5000)
	check("range", got, want[100:5100], info, err)
	got, info, err = s.ReadSuffix(ctx, key, 7000)
	check("suffix", got, want[len(want)-7000:], info, err)
	info, err = s.Head(ctx, key)
	check("head", nil, nil, info, err)
	if info.Size != int64(len(want)) {
		t.Errorf("head of %s: size %d, want %d", key, info.Size, len(want))
	}
}

// TestSlowBody: a body that comes by a few bytes at a time comes whole.
func TestSlowBody(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		body := noise(3, 1000)
		if _, err := c.past(t).PutOnce(t.Context(), "slow", body, nil); err != nil {
			t.Fatal(err)
		}
		tick := make(chan struct{})
		c.under(t, &Rule{Name: "slow", Ops: []objstore.Op{objstore.OpGet}, Fault: Trickle{Bytes: 100, Tick: tick}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, info, err := c.store(t, nil).ReadAll(t.Context(), "slow", 1000)
			if err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d bytes, %+v, %v", len(got), info, err)
			}
		}()
		ticks := 0
		for {
			select {
			case tick <- struct{}{}:
				ticks++
				continue
			case <-done:
			}
			break
		}
		if ticks < 10 {
			t.Errorf("%d ticks for 1000 bytes by 100", ticks)
		}
	})
}

// TestAbsenceIsProven: a page that says 404 is no proof that a key is absent.
func TestAbsenceIsProven(t *testing.T) {
	cells(t, func(t *testing.T, c *cell) {
		if _, err := c.past(t).PutOnce(t.Context(), "there", []byte("x"), nil); err != nil {
			t.Fatal(err)
		}
		c.under(t, &Rule{Name: "404", Ops: []objstore.Op{objstore.OpGet, objstore.OpHead}, Fault: Page(404)})
		s := c.store(t, nil)
		_, err := s.Head(t.Context(), "there")
		only(t, "head", err, objstore.ErrUnavailable)
		_, _, err = s.ReadAll(t.Context(), "there", 10)
		only(t, "get", err, objstore.ErrUnavailable)
	})
}
