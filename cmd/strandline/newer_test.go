package main

import (
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/catalog"
)

// TestNewerSchemaWhileServing: a writer, an auditor and a reader whose catalog a newer build
// has migrated say so at /readyz, and the writer goes on with local acknowledgements, as
// while the catalog is away. All are back once the older catalog is.
func TestNewerSchemaWhileServing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "catalog.db")
	tier := []string{"--catalog", "sqlite://" + file, "--store", "standard=file://" + filepath.Join(dir, "bucket")}
	writer := startWriter(t, tier, filepath.Join(dir, "disk"))
	services := map[string]*running{
		"writer":  writer,
		"auditor": serve(t, with([]string{"auditor", "--http", "127.0.0.1:0"}, tier...)...),
		"reader":  serve(t, with([]string{"reader", "--http", "127.0.0.1:0"}, tier...)...),
	}
	raw, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }() // its work is done by then
	var standing int
	if err := raw.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&standing); err != nil {
		t.Fatal(err)
	}
	version := func(v int) {
		t.Helper()
		if _, err := raw.ExecContext(t.Context(), fmt.Sprintf("PRAGMA user_version = %d", v)); err != nil {
			t.Fatal(err)
		}
	}
	ready := func(r *running) (code int, text string) { return get(t, http.MethodGet, r.url+"/readyz", "") }
	for name, r := range services {
		if code, text := ready(r); code != http.StatusOK {
			t.Fatalf("%s: %d %s", name, code, text)
		}
	}
	version(standing + 1)
	for name, r := range services {
		eventually(t, name+" says that the schema is newer", func() bool {
			code, text := ready(r)
			return code == http.StatusServiceUnavailable && strings.Contains(text, "a newer strandline migrated it") && strings.Contains(text, "start the newer version")
		})
	}
	cli(t, "row\n", "append", "s", "--server", writer.url, "--ack", "local").want(t, exitOK)
	if code, text := get(t, http.MethodGet, writer.url+"/metrics", ""); code != http.StatusOK || !strings.Contains(text, `outcome="newer"`) {
		t.Errorf("no metric counts it: %d", code)
	}
	version(standing)
	for name, r := range services {
		eventually(t, name+" is ready again", func() bool { code, _ := ready(r); return code == http.StatusOK })
	}
}

// TestPulseOfANewerSchema: no patience is had with a schema that this build does not know.
func TestPulseOfANewerSchema(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPulse(nil, time.Second, func() time.Duration { return time.Hour })
		for _, err := range []error{nil, catalog.NewerSchema("the catalog", 5, 4), nil} {
			p.err = err
			if got := p.ready(); (got == nil) != (err == nil) {
				t.Errorf("%v: %v", err, got)
			}
		}
	})
}
