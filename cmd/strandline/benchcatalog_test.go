package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/strandline/strandline/internal/catalogbench"
)

// TestBenchCatalog: SQLite as a table and as JSON; nothing is left, and it says how to
// measure PostgreSQL. It runs as a process: the detector makes SQLite ten times dearer, and
// the package's own tests run the same under it.
func TestBenchCatalog(t *testing.T) {
	t.Parallel()
	dir, binary := t.TempDir(), buildBinary(t)
	bench := func(more ...string) result {
		t.Helper()
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(t.Context(), binary, with([]string{"bench", "catalog", "--quick", "--refs", "10000", "--dir", dir}, more...)...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // how it ended is the code
		return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	}
	bench().want(t, exitOK, "AbsorbSlot 1,000", "10,000 refs", "RenewChain x16", "a bare insert", "PostgreSQL was not measured: give --catalog")
	r := bench("--json")
	r.want(t, exitOK)
	var got catalogbench.Report
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || len(got.Databases) != 1 || len(got.Expected) == 0 || len(got.Notes) != 1 {
		t.Errorf("%v: %s", err, r.out)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("files are left: %v %v", files, err)
	}
}

func TestBenchCatalogRefuses(t *testing.T) {
	cli(t, "", "bench", "catalog", "--refs", "20000,10000", "--rounds", "-1").want(t, exitUsage, "ascending", "rounds")
	cli(t, "", "bench", "catalog", "--only", "mysql").want(t, exitUsage, "give sqlite or postgres")
	cli(t, "", "bench", "catalog", "--only", "postgres").want(t, exitUsage, "give the URL of a PostgreSQL database")
	r := cli(t, "", "bench", "catalog", "--catalog", "mysql://me:hush-hush@h/db")
	r.want(t, exitUsage, "give postgres://")
	if strings.Contains(r.out+r.err, "hush-hush") {
		t.Error("the password is shown")
	}
}
