package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/strandline/strandline/internal/auditbench"
)

// TestBenchAuditor: one part, as a table and as JSON; nothing is left.
func TestBenchAuditor(t *testing.T) {
	t.Parallel()
	dir, catalogs := t.TempDir(), t.TempDir()
	args := []string{
		"bench", "auditor", "--store", "standard=file://" + dir, "--dir", catalogs, "--quick", "--only", "^(debt|reap)$",
		"--objects", "7", "--standing", "3", "--debt", "2",
	}
	cli(t, "", args...).want(t, exitOK, "reap", "7 objects", "debt among", "30 objects", "sizes too small to say", "the store's driver")
	r := cli(t, "", append(args, "--json")...)
	r.want(t, exitOK)
	var got auditbench.Report
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || got.Reap == nil || got.Reap.Objects != 7 || got.Debt == nil || got.Settle != nil {
		t.Errorf("%v: %s", err, r.out)
	}
	if files, err := os.ReadDir(catalogs); err != nil || len(files) > 0 {
		t.Errorf("catalogs are left: %v %v", files, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "meta", "doctor")); err == nil {
		t.Error("objects are left under meta/doctor/")
	}
}

func TestBenchAuditorRefuses(t *testing.T) {
	cli(t, "", "bench", "auditor").want(t, exitUsage, "--store is missing")
	cli(t, "", "bench", "auditor", "--store", "file:///x", "--streams", "10,5", "--only", "(", "--rounds", "-1", "--move-bytes", "1KiB").
		want(t, exitUsage, "ascending", "--only", "rounds", "move bytes")
}
