package sqlite

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// checkPlans fails if any statement that was prepared would scan a table that grows
// with the data, or sort without an index what it reads. Counts for people may.
func checkPlans(t testing.TB, d *DB) {
	t.Helper()
	cs := []*conn{d.writer.c}
	for range d.opt.Readers {
		c := <-d.readers
		cs = append(cs, c)
		defer func() { d.readers <- c }()
	}
	seen := 0
	for _, c := range cs {
		for q := range c.stmts {
			if !strings.HasPrefix(q, "SELECT") && !strings.HasPrefix(q, "UPDATE") && !strings.HasPrefix(q, "DELETE") && !strings.HasPrefix(q, "INSERT") {
				continue
			}
			seen++
			for _, step := range explain(t, c, q) {
				if scans(step) && !mayScan(q) || strings.HasPrefix(q, "UPDATE") && strings.HasSuffix(step, "(duty=?)") {
					t.Errorf("%s\n\tplan: %s", q, step)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no statement was prepared: this check checks nothing")
	}
}

func explain(t testing.TB, c *conn, q string) (steps []string) {
	t.Helper()
	rows, err := c.raw.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+q, make([]any, strings.Count(q, "?"))...)
	if err != nil {
		t.Fatalf("explain %s: %v", q, err)
	}
	defer func() {
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, detail)
	}
	return steps
}

// scans: EXPLAIN names the tables by the aliases that the statements give them.
func scans(step string) bool {
	for _, table := range []string{"ref", "r", "slot", "s", "w", "object", "o", "stream", "marker", "m", "intent", "x", "y", "k"} {
		rest, ok := strings.CutPrefix(step, "SCAN "+table)
		if ok && (rest == "" || rest[0] == ' ') && !strings.Contains(rest, "object_odd") && !strings.Contains(rest, "slot_owed") {
			return true
		}
	}
	return strings.Contains(step, "AUTOMATIC")
}

// mayScan: status counts, and pages of all rows by their key.
func mayScan(q string) bool {
	for _, part := range []string{"COUNT(*)", "GROUP BY", "FROM object o CROSS JOIN ref r"} {
		if strings.Contains(q, part) && !strings.Contains(q, "WHERE o.key =") && !strings.Contains(q, "lease_end > ?4") {
			return true
		}
	}
	return false
}

// TestIndexesServe: the queries whose indexes were made for them use these, and read what
// they order in its order. Without the index another one serves, and costs what stands.
func TestIndexesServe(t *testing.T) {
	ctx := context.Background()
	d := openAt(t, filepath.Join(t.TempDir(), "catalog.db"), nil)
	prepareChain(t, d)
	absorbN(t, d, 1, 1)
	if _, err := d.PackWindow(ctx, testChain, 0, 8); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.RefsAcross(ctx, testChain, 1, nil, 8); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"o.generation = ?": "object_pack (generation=? AND key>? AND key<?)",
		"length(printf":    "ref_long (epoch=? AND shard=? AND <expr>=? AND (last,stream)>(?,?) AND last<?)",
		"< 4096":           "ref_chain (epoch=? AND shard=? AND (last,stream)>(?,?) AND last<?)",
	}
	for range d.opt.Readers {
		c := <-d.readers
		defer func() { d.readers <- c }()
		for q := range c.stmts {
			for part, index := range want {
				if !strings.Contains(q, part) {
					continue
				}
				steps := strings.Join(explain(t, c, q), "\n")
				if !strings.Contains(steps, index) {
					t.Errorf("%s\n%s\nwant %s", q, steps, index)
				}
				delete(want, part)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("no statement has %v: this check checks nothing", want)
	}
}

func TestPlansAreChecked(t *testing.T) {
	for step, want := range map[string]bool{
		"SCAN ref": true, "SCAN r": true, "SCAN m USING INDEX marker_due": true, "SEARCH r USING PRIMARY KEY (stream=?)": false,
		"SCAN j VIRTUAL TABLE INDEX 1:": false, "SCAN c": false, "SCAN object USING INDEX object_odd": false, "SCAN n": false,
	} {
		if scans(step) != want {
			t.Errorf("%s: %v", step, !want)
		}
	}
}
