//go:build unix

package soak

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/segment"

	_ "modernc.org/sqlite" // the catalog's file, behind the catalog's back
)

// sabotage breaks one thing, and undoes it.
type sabotage struct {
	name string
	want string // what the findings have to speak of
	do   func(ctx context.Context, r *run) (undo func() error, err error)
}

var sabotages = []sabotage{
	{"an acknowledged row that is not there", "loss: ", func(_ context.Context, r *run) (func() error, error) {
		s := r.ledger.streams[nameOn(0, "small")]
		was := slices.Clone(s.acked)
		last := was[len(was)-1]
		s.acked = append(s.acked, entry{n: last.n + 1, seq: last.seq + 1, term: last.term, shared: true})
		return func() error { s.acked = was; return nil }, nil
	}},
	{"two rows that changed places", "disorder: ", func(_ context.Context, r *run) (func() error, error) {
		s := r.ledger.streams[nameOn(1, "small")]
		a, b := &s.acked[len(s.acked)-1], &s.acked[len(s.acked)-2]
		a.seq, b.seq = b.seq, a.seq
		return func() error { a.seq, b.seq = b.seq, a.seq; return nil }, nil
	}},
	{"a local row that no loss excuses", "loss: ", func(_ context.Context, r *run) (func() error, error) {
		e := &r.ledger.streams[nameOn(2, "small")].acked[0]
		was := *e
		e.n, e.seq, e.shared = 0, 1<<40, false
		return func() error { *e = was; return nil }, nil
	}},
	{"a taker that began below what was absorbed", "I8: ", func(_ context.Context, r *run) (func() error, error) {
		r.ledger.losses[3] = append(r.ledger.losses[3], loss{term: 1, next: 1 << 40})
		return func() error { r.ledger.losses[3] = nil; return nil }, nil
	}},
	{"an object deleted behind its back", "which is gone", func(ctx context.Context, r *run) (func() error, error) {
		named, err := r.namedKeys(ctx)
		if err != nil {
			return nil, err
		}
		key := ""
		for k := range named {
			key = max(key, k)
		}
		body, info, err := r.site.store.ReadAll(ctx, key, 1<<30)
		if err != nil {
			return nil, err
		}
		results, err := r.site.store.Delete(ctx, []string{key})
		_ = results // one key: the error has it
		return func() error { _, err := r.site.store.PutOnce(ctx, key, body, info.Meta); return err }, err
	}},
	{"an object that nothing names", "leak: no ref names", func(ctx context.Context, r *run) (func() error, error) {
		key := segment.PackKey(segment.Chain{Epoch: 1, Shard: 1}, 1<<30, 1<<30, 0)
		_, err := r.site.store.PutOnce(ctx, key, []byte("stray"), nil)
		return func() error { _, err := r.site.store.Delete(ctx, []string{key}); return err }, err
	}},
	{"a ref dropped from the catalog", "lacks", func(ctx context.Context, r *run) (func() error, error) {
		return dropRef(ctx, filepath.Join(r.site.dir, "catalog.db"))
	}},
}

// dropRef deletes one row of the ref table and gives the way back.
func dropRef(ctx context.Context, path string) (undo func() error, err error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}
	back := []string{
		"CREATE TABLE kept AS SELECT * FROM ref ORDER BY last DESC LIMIT 1",
		"DELETE FROM ref WHERE (stream, last) IN (SELECT stream, last FROM kept)",
	}
	for _, q := range back {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return nil, fmt.Errorf("%s: %w", q, err)
		}
	}
	return func() error {
		defer db.Close()
		for _, q := range []string{"INSERT INTO ref SELECT * FROM kept", "DROP TABLE kept"} {
			if _, err := db.ExecContext(ctx, q); err != nil {
				return fmt.Errorf("%s: %w", q, err)
			}
		}
		return nil
	}, nil
}

// TestJudge: of a run without faults, the judgement finds nothing, and then each of what is
// broken behind the product's back.
func TestJudge(t *testing.T) {
	o := options(t)
	o.Duration, o.Calm = 4*time.Second, true
	o.Logf = func(string, ...any) {} // what is found is what is wanted here
	done := 0
	o.Sabotage = func(ctx context.Context, r *run) error {
		if err := r.runDry(ctx); err != nil {
			return err
		}
		if err := r.judgeLeft(ctx); err != nil {
			return err
		}
		if found := r.forget(); len(found) > 0 {
			t.Errorf("nothing was broken: %v", found)
		}
		for _, s := range sabotages {
			undo, err := s.do(ctx, r)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			err = r.judgeLeft(ctx)
			found := r.forget()
			if err != nil || !strings.Contains(strings.Join(found, "\n"), s.want) {
				t.Errorf("%s: want findings of %q, got %v, %v", s.name, s.want, found, err)
			}
			if err := undo(); err != nil {
				return fmt.Errorf("undo: %s: %w", s.name, err)
			}
			done++
		}
		r.watch.rises("absorbed_end of shard 0", 1<<60)
		if err := r.watch.look(ctx); err != nil {
			return err
		}
		if found := r.forget(); !strings.Contains(strings.Join(found, "\n"), "I6: absorbed_end") {
			t.Errorf("a cursor that went back: %v", found)
		}
		return nil
	}
	report, err := Run(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, report)
	}
	if done != len(sabotages) {
		t.Errorf("%d of %d sabotages", done, len(sabotages))
	}
}

// forget gives the findings and begins anew.
func (r *run) forget() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.findings
	r.findings = nil
	return found
}
