package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/strandline/strandline/catalog"
)

// TestAuditorRefusesFlags that cannot be meant.
func TestAuditorRefusesFlags(t *testing.T) {
	for _, c := range []struct{ flag, value, says string }{
		{"--budget-bytes", "1KiB", "give 1MiB or more, or 0"},
		{"--budget-requests", "-1", "or 0 for no bound"},
		{"--gc-least", "0", "--gc-least 0: give 1 or more"},
		{"--tail-fill-target", "0", "--tail-fill-target"},
		{"--stream-object-min", "0", "--stream-object-min"},
		{"--pack-merge-fan", "1", "pack-fan 1"},
		{"--auditor-lease", "1ms", "lease"},
		{"--settle-lease", "1ms", "lease"},
		{"--duty", "compact", "pack-merge"},
	} {
		cli(t, "", "auditor", "--dir", t.TempDir(), c.flag, c.value).want(t, exitUsage, c.says)
	}
}

// TestAuditorServesThePolicies: packs merge in one run; a dry run says so before; budget and
// duties are in what is printed.
func TestAuditorServesThePolicies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	graces := []string{"--settle-age", "1h", "--auditor-read-grace", "1s", "--auditor-orphan-grace", "10s", "--auditor-lease", "1s"}
	audit := append([]string{"auditor", "--once", "--dir", dir, "--pack-merge-fan", "2"}, graces...)
	for range 2 {
		up := startUp(t, dir, append([]string{"--shards", "1"}, graces...)...)
		cli(t, "a row\n", "append", "s", "--server", up.url, "--ack", "shared").want(t, exitOK)
		up.end(t)
		cli(t, "", append(audit, "--settle-age", "0s", "--duty", "settle")...).want(t, exitOK, "settle")
	}
	cli(t, "", append(audit, "--dry-run")...).want(t, exitOK, "pack-merge: ", "would move into")
	cli(t, "", append(audit, "--budget-bytes", "1MiB", "--budget-requests", "100")...).
		want(t, exitOK, "pack-merge", "rewritten 1", "share of one of", "/s", "requests/s")
	cli(t, "", "fsck", "--dir", dir).want(t, exitOK, "clean")
}

// TestAuditorDryRunSeedsNothing: not even the margins that it was given; and it has no schedule.
func TestAuditorDryRunSeedsNothing(t *testing.T) {
	dir := t.TempDir()
	up := startUp(t, dir, "--shards", "1")
	up.end(t)
	dry := []string{"auditor", "--dir", dir, "--dry-run", "--auditor-read-grace", "1s", "--auditor-orphan-grace", "10s"}
	cli(t, "", dry...).want(t, exitUsage, "give --once, too")
	cli(t, "", append(dry, "--once")...).want(t, exitOK)
	cli(t, "", "status", "--dir", dir).want(t, exitOK, "read grace 10m0s, orphan grace 1h0m0s")
}

// TestAlarmsStandInStatus: what an auditor found and an operator has to hear of.
func TestAlarmsStandInStatus(t *testing.T) {
	dir := t.TempDir()
	up := startUp(t, dir, "--shards", "1")
	up.end(t)
	b := backendFlags{dir: dir}
	tr, err := b.open(t.Context(), modeWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := tr.catalog.Audit(t.Context(), "bucket", "auditor", "it was emptied"); err != nil {
		t.Fatal(err)
	}
	cli(t, "", "status", "--dir", dir).want(t, exitOK, "latest alarms", "bucket auditor: it was emptied")
	cli(t, "", "status", "--dir", dir, "--json").want(t, exitOK, `"alarms"`, `"kind": "bucket"`)
}

// audited is an audit table of n rows, the first being from.
type audited struct {
	catalog.Inspector
	from, n int64
}

func (a audited) AuditRows(_ context.Context, after int64, limit int) (out []catalog.AuditRow, err error) {
	for seq := max(a.from, after+1); seq < a.from+a.n && len(out) < limit; seq++ {
		kind := "takeover"
		if seq%3 == 0 {
			kind = "lost"
		}
		out = append(out, catalog.AuditRow{Seq: seq, Kind: kind, Subject: fmt.Sprint(seq)})
	}
	return out, nil
}

// TestRecentAlarms finds the end of the table, wherever it begins and ends.
func TestRecentAlarms(t *testing.T) {
	for _, c := range []struct {
		from, n int64
		first   string // of those shown; "" for none
		shown   int
	}{{1, 0, "", 0}, {1, 1, "", 0}, {1, 3, "3", 1}, {1, 64, "36", 10}, {1, 100_000, "99972", 10}, {5000, 1, "", 0}, {5001, 1, "5001", 1}, {123_456, 100_000, "223428", 10}} {
		got, err := recentAlarms(t.Context(), audited{from: c.from, n: c.n})
		if err != nil || len(got) != c.shown || c.shown > 0 && got[0].Subject != c.first {
			t.Errorf("rows %d to %d: %d alarms, %v, %v", c.from, c.from+c.n-1, len(got), got, err)
		}
	}
}
