package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

func TestTopologyUsage(t *testing.T) {
	dir := t.TempDir()
	startUp(t, dir).end(t)
	for name, c := range map[string]struct {
		args  []string
		texts []string
	}{
		"all faults": {
			[]string{"--shards", "0", "--retention", "some", "--retain-age", "-1s", "--retain-segment-size", "0B", "--min-retained-segments", "0", "--drain", "-1s"},
			[]string{"--shards 0", "keep or interest", "--retain-age", "--retain-segment-size", "--min-retained-segments", "--drain"},
		},
		"nothing":       {nil, []string{"--shards", "--retention"}},
		"limits, kept":  {[]string{"--retain-rows", "5"}, []string{"--retention interest"}},
		"bad size":      {[]string{"--retain-bytes", "many"}, []string{"64MiB"}},
		"many shards":   {[]string{"--shards", "65537"}, []string{"65536"}},
		"not a command": {[]string{"now"}, []string{"topology set"}},
	} {
		t.Run(name, func(t *testing.T) {
			cli(t, "", with([]string{"topology", "set", "--dir", dir}, c.args...)...).want(t, exitUsage, c.texts...)
		})
	}
}

// epochs as topology show --json prints them.
func epochs(t *testing.T, args ...string) (out []epochOut) {
	t.Helper()
	r := cli(t, "", with([]string{"topology", "show", "--json"}, args...)...)
	r.want(t, exitOK)
	if err := json.Unmarshal([]byte(r.out), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRetentionSet(t *testing.T) {
	dir := t.TempDir()
	d := []string{"--dir", dir}
	set := func(args ...string) result {
		return cli(t, "", with(with([]string{"topology", "set"}, args...), d...)...)
	}
	set("--shards", "3").want(t, exitOK, "open") // founds
	if e := epochs(t, d...); len(e) != 1 || e[0].Shards != 3 || e[0].Retention.Mode != "keep" {
		t.Fatalf("%+v", e)
	}
	set("--retention", "interest", "--retain-rows", "1000", "--retain-age", "2h").want(t, exitOK, "beyond 1,000 rows", "older than 2h")
	set("--retain-bytes", "10GiB", "--retain-rows", "0").want(t, exitOK, "beyond 10 GiB")
	if r := epochs(t, d...)[0].Retention; r.Rows != 0 || r.Bytes != 10<<30 || r.Age != "2h0m0s" || r.MinSegments != 2 {
		t.Errorf("%+v", r)
	}
	set("--retention", "keep", "--dry-run").want(t, exitOK, "would set the retention of epoch 1: keep")
	set("--shards", "3", "--dry-run").want(t, exitOK, "would change nothing")
	for _, c := range []struct {
		args  []string
		would []string
	}{
		{[]string{"--retention", "keep"}, []string{"set the retention of epoch 1: keep"}},
		{[]string{"--shards", "3"}, []string{}},
		{[]string{"--shards", "5", "--retention", "keep"}, []string{
			"make epoch 2 with 5 shards, class standard (file://" + filepath.Join(dir, "bucket") + "), settle true, gives up: keep", "close epoch 1: 3 shards, 0 of them with a living writer, which has 30s to let go", "open epoch 2",
		}},
	} {
		var dry struct {
			DryRun bool `json:"dry_run"`
			Would  []string
		}
		r := set(with(c.args, "--dry-run", "--json")...)
		if err := json.Unmarshal([]byte(r.out), &dry); err != nil || r.code != exitOK || !dry.DryRun || dry.Would == nil || !slices.Equal(dry.Would, c.would) {
			t.Errorf("%v: %+v, %v", c.args, r, err)
		}
	}
	set("--shards", "3", "--retain-segments", "7").want(t, exitOK, "beyond 7 segments")
	if e := epochs(t, d...); len(e) != 1 || e[0].Retention.Mode != "interest" {
		t.Errorf("%+v", e)
	}
	set("--retention", "keep").want(t, exitOK, "nothing")
}

// TestReshard: running writers go on in the next epoch, each with its share; the streams
// are whole across both.
func TestReshard(t *testing.T) {
	tier := shared(t)
	a := startWriter(t, tier, t.TempDir(), "--shard-index", "0", "--shard-count", "2")
	b := startWriter(t, tier, t.TempDir(), "--shard-index", "1", "--shard-count", "2")
	owner := func(shards uint32, name string) *running {
		if segment.ShardOf(name, shards)%2 == 0 {
			return a
		}
		return b
	}
	names := []string{streamOf(4, 0), streamOf(4, 1), streamOf(4, 2), streamOf(4, 3)}
	for _, n := range names {
		cli(t, "one\n", "append", n, "--server", owner(4, n).url).want(t, exitOK)
	}
	cli(t, "", with([]string{"consumers", "pull", "0", "c"}, tier...)...).want(t, exitOK, "one")
	dry := cli(t, "", with([]string{"topology", "set", "--shards", "6", "--dry-run"}, tier...)...)
	dry.want(t, exitOK, "would make epoch 2 with 6 shards", "4 of them with a living writer", "would open epoch 2")
	if e := epochs(t, tier...); len(e) != 1 {
		t.Fatalf("a dry run did something: %+v", e)
	}
	cli(t, "", with([]string{"topology", "set", "--shards", "6"}, tier...)...).want(t, exitOK, "closed", "open")
	if e := epochs(t, tier...); len(e) != 2 || e[0].State != catalog.TopologyClosed || e[0].Closed != 4 || e[1].State != catalog.TopologyOpen || e[1].Shards != 6 {
		t.Fatalf("%+v", e)
	}
	for _, n := range names {
		// The writers may be on their way into the new epoch: appends wait for it (503, or 421 of the old one).
		appendUntil(t, owner(6, n).url, n, "two\n")
	}
	a.end(t)
	b.end(t)
	for _, n := range names {
		if r := cli(t, "", with([]string{"cat", n}, tier...)...); r.code != exitOK || r.out != "one\ntwo\n" {
			t.Errorf("%s: %+v", n, r)
		}
	}
	// The closed chain's consumer is the catalog's to answer.
	old := with([]string{"--epoch", "1"}, tier...)
	cli(t, "", with([]string{"consumers", "ack", "0", "c", "1"}, old...)...).want(t, exitOK, "cursor 1")
	cli(t, "", with([]string{"consumers", "ls", "0"}, old...)...).want(t, exitOK, "c")
	cli(t, "", with([]string{"consumers", "rm", "0", "c"}, old...)...).want(t, exitUsage, "closed")
	cli(t, "", with([]string{"scan", "0"}, old...)...).want(t, exitOK, "one")
	cli(t, "", with([]string{"fsck"}, tier...)...).want(t, exitOK, "clean")
}

// appendUntil appends once the server takes it: it is between two epochs.
func appendUntil(t *testing.T, url, stream, rows string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		r := cli(t, rows, "append", stream, "--server", url)
		if r.code == exitOK {
			return
		}
		if time.Now().After(deadline) || r.code != exitUnavailable && r.code != exitNotOwner {
			t.Fatalf("%+v", r)
		}
	}
}

// TestShardsThatNobodyTakes: a new epoch with shards that no running writer has is told of by who
// makes it and by status, with what to start; one whose shards are all taken is not.
func TestShardsThatNobodyTakes(t *testing.T) {
	tier := shared(t)
	w := startWriter(t, tier, t.TempDir(), "--shards", "0-3")
	if r := cli(t, "", with([]string{"status"}, tier...)...); r.code != exitOK || strings.Contains(r.out, "no living writer") {
		t.Errorf("%+v", r)
	}
	r := cli(t, "", with([]string{"topology", "set", "--shards", "8"}, tier...)...)
	if r.want(t, exitOK); !strings.Contains(r.err, "no living writer has shards 4-7 of epoch 2") || !strings.Contains(r.err, "strandline writer --shards 4-7") {
		t.Errorf("topology set says nothing of shards that nobody has: %s", r.err)
	}
	cli(t, "", with([]string{"status"}, tier...)...).want(t, exitOK, "no living writer has shards 4-7 of epoch 2", "--shards 4-7")
	more := startWriter(t, tier, t.TempDir(), "--shards", "4-7")
	if r := cli(t, "", with([]string{"status"}, tier...)...); r.code != exitOK || strings.Contains(r.out, "no living writer") {
		t.Errorf("all are taken: %+v", r)
	}
	more.end(t)
	w.end(t)
	cli(t, "", with([]string{"status", "--json"}, tier...)...).want(t, exitOK, `"untaken"`)
}

func TestShardsText(t *testing.T) {
	for want, shards := range map[string][]segment.Shard{"": nil, "7": {7}, "0-1": {0, 1}, "0-3,5,7-8": {0, 1, 2, 3, 5, 7, 8}} {
		if got := shardsText(shards); got != want {
			t.Errorf("%v: %q", shards, got)
		}
	}
}

var errStop = errors.New("stopped")

// TestReshardResumes: the command is stopped after each of its steps, and the next one
// goes on from there.
func TestReshardResumes(t *testing.T) {
	steps := 0
	for stopAt := 0; ; stopAt++ {
		tier := shared(t)
		w := startWriter(t, tier, t.TempDir())
		name := streamOf(4, 1)
		cli(t, "one\n", "append", name, "--server", w.url).want(t, exitOK)
		w.end(t)
		n := 0
		err := reshardTo(t, tier, 2, func(string) error {
			if n == stopAt {
				return errStop
			}
			n++
			return nil
		})
		stopped := errors.Is(err, errStop)
		if err != nil && !stopped {
			t.Fatal(err)
		}
		if stopped && stopAt > 0 { // half-way, nobody else's number is taken
			cli(t, "", with([]string{"topology", "set", "--shards", "9"}, tier...)...).want(t, exitUsage, "--shards 2")
		}
		if err := reshardTo(t, tier, 2, nil); err != nil {
			t.Fatalf("after a stop at step %d: %v", stopAt, err)
		}
		e := epochs(t, tier...)
		if len(e) != 2 || e[0].State != catalog.TopologyClosed || e[0].Closed != 4 || e[1].State != catalog.TopologyOpen {
			t.Fatalf("after a stop at step %d: %+v", stopAt, e)
		}
		w = startWriter(t, tier, t.TempDir())
		cli(t, "two\n", "append", name, "--server", w.url).want(t, exitOK)
		w.end(t)
		if r := cli(t, "", with([]string{"cat", name}, tier...)...); r.out != "one\ntwo\n" {
			t.Errorf("after a stop at step %d: %+v", stopAt, r)
		}
		if !stopped {
			break
		}
		steps++
	}
	if steps != 7 { // opening, closing, four chains, closed
		t.Errorf("stopped at %d steps", steps)
	}
}

// reshardTo is topology set --shards with a stop.
func reshardTo(t *testing.T, flags []string, shards uint32, at func(string) error) error {
	t.Helper()
	f := &topologyFlags{shards: shards, drain: time.Minute, given: func(name string) bool { return name == "shards" }}
	f.backend.catalog = flags[1]
	f.backend.stores = []string{flags[3]}
	tr, err := f.backend.open(t.Context(), modeCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}()
	r := &reshard{tier: tr, log: slog.New(slog.DiscardHandler), drain: f.drain, at: at}
	return r.set(t.Context(), f)
}

// TestReshardTakesOver: an owner that does not let go in time loses its chains, and what
// it had not published is set aside, to be salvaged.
func TestReshardTakesOver(t *testing.T) {
	tier := shared(t)
	disk := t.TempDir()
	name := streamOf(4, 2)
	left := leaveUnpublished(t, tier, disk, name, "lost?\n")
	cli(t, "", with([]string{"topology", "set", "--shards", "2", "--drain", "0s"}, tier...)...).want(t, exitOK, "closed")
	w := startWriter(t, tier, disk) // serves the new epoch; finds its chains closed, and sets its directory aside
	var q []quarantineOut
	for deadline := time.Now().Add(time.Minute); ; {
		ls := cli(t, "", "quarantine", "ls", "--dir", disk, "--json")
		if err := json.Unmarshal([]byte(ls.out), &q); err == nil && len(q) == 1 && q[0].State == "waits" && q[0].Rows == uint64(left) {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%+v, %v", ls, err)
		}
	}
	cli(t, "", with([]string{"status", "--dir", disk}, tier...)...).want(t, exitOK, "QUARANTINE")
	w.end(t)
	w = startWriter(t, tier, disk, "--quarantine-max", "1B")
	ready, err := http.Get(w.url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(ready.Body)
	_ = ready.Body.Close() // read to its end
	if err != nil || ready.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(answer), "strandline salvage") {
		t.Errorf("ready with too much in quarantine: %s %s %v", ready.Status, answer, err)
	}
	cli(t, "", with([]string{"salvage", "--all", "--dry-run", "--dir", disk}, tier...)...).want(t, exitOK, "1 row would be appended")
	cli(t, "", with([]string{"salvage", q[0].Dir, "--dir", disk}, tier...)...).want(t, exitOK, "1 row appended again")
	cli(t, "", with([]string{"salvage", "--all", "--dir", disk, "--json"}, tier...)...).want(t, exitOK, `"sent": 0`, "salvaged")
	cli(t, "", "quarantine", "rm", q[0].Dir).want(t, exitUsage, "--yes", "appended again")
	cli(t, "", "quarantine", "rm", q[0].Dir, "--dry-run").want(t, exitOK, "would go")
	cli(t, "", "quarantine", "rm", q[0].Dir, "--yes").want(t, exitOK, "are gone")
	cli(t, "", "quarantine", "rm", q[0].Dir, "--yes").want(t, exitFailed, "quarantine ls")
	if ls := cli(t, "", "quarantine", "ls", "--dir", disk, "--json"); strings.TrimSpace(ls.out) != "[]" {
		t.Errorf("%+v", ls)
	}
	w.end(t)
	if r := cli(t, "", with([]string{"cat", name}, tier...)...); r.out != "lost?\n" {
		t.Errorf("%+v", r)
	}
}

// leaveUnpublished leaves a disk with rows that the bucket does not have, and the lease
// of its writer alive: as a kill would.
func leaveUnpublished(t *testing.T, tier []string, disk, stream, rows string) int {
	t.Helper()
	binary := buildBinary(t)
	c := startProcess(t, binary, with(with([]string{"writer", "--dir", disk, "--http", "127.0.0.1:0", "--segment-age", "1h"}, tier...))...)
	if _, err := postRows(context.Background(), c.url, stream, []byte(rows)); err != nil {
		t.Fatal(err)
	}
	_ = c.kill() // "signal: killed" is what was asked for
	return strings.Count(rows, "\n")
}

func TestPolicyFlags(t *testing.T) {
	f := &topologyFlags{rows: 5, given: func(n string) bool { return n == "retain-rows" }}
	got, err := f.policy(catalog.Retention{Mode: catalog.RetentionInterest, Age: time.Hour})
	if want := (catalog.Retention{Mode: catalog.RetentionInterest, Age: time.Hour, Rows: 5}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if s := fmt.Sprint(retentionOf(catalog.Retention{Mode: "newer:x"})); s != "newer:x" {
		t.Errorf("an unknown mode reads %q", s)
	}
}
