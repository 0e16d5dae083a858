package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/auditor"
	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
)

// TestRewriteRoom: while less than the bound is free, nothing is written anew and whatever
// gives room goes on; gc, which gives back more than it takes, has half of the bound. It is
// told once, and it ends by itself.
func TestRewriteRoom(t *testing.T) {
	said := &lockedBuffer{}
	var free int64
	var failed error
	r := &rewriteRoom{dir: "/disk", least: 1000, free: func(string) (int64, error) { return free, failed }, log: slog.New(slog.NewTextHandler(said, nil))}
	ran := func() (duties []string) {
		around := r.around(nil)
		for _, duty := range auditor.DutyNames() {
			worked, err := around(t.Context(), duty, func(context.Context) (int, error) {
				duties = append(duties, duty)
				return 7, nil
			})
			if err != nil || worked != 0 && worked != 7 {
				t.Errorf("%s: %d, %v", duty, worked, err)
			}
		}
		return duties
	}
	held := func(free int64, want ...string) {
		t.Helper()
		all := strings.Join(ran(), " ") + " "
		for _, duty := range auditor.DutyNames() {
			isHeld := !strings.Contains(all, duty+" ")
			if wanted := strings.Contains(" "+strings.Join(want, " ")+" ", " "+duty+" "); isHeld != wanted {
				t.Errorf("%d free: %s held: %v", free, duty, isHeld)
			}
		}
		if (r.held() != "") != (len(want) > 0) {
			t.Errorf("%d free: %q", free, r.held())
		}
	}
	for _, c := range []struct {
		free int64
		want []string
	}{
		{1000, nil},
		{999, []string{"settle", "pack-merge", "tail-fill"}},
		{499, []string{"settle", "pack-merge", "tail-fill", "gc"}},
		{1000, nil},
	} {
		free = c.free
		held(c.free, c.want...)
	}
	if log := said.String(); strings.Count(log, "rewriting is held") != 1 || strings.Count(log, "rewriting goes on") != 1 {
		t.Errorf("said: %s", log)
	}
	free, failed = 0, errors.New("statfs")
	held(0)
	if (*rewriteRoom)(nil).held() != "" {
		t.Error("no room, and it holds")
	}
}

// TestUpKeepsItsDiskFree: with the bucket on the disk of --dir, an up whose disk is below its
// bound settles nothing, and says so where it is asked; with room, it does.
func TestUpKeepsItsDiskFree(t *testing.T) {
	dir := t.TempDir()
	settled := func() int {
		found, err := filepath.Glob(filepath.Join(dir, "bucket", "pack", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	up := startUp(t, dir, "--settle-age", "1h")
	cli(t, "row\n", "append", "s", "--server", up.url, "--ack", "shared").want(t, exitOK)
	up.end(t)
	up = startUp(t, dir, "--settle-age", "0s", "--min-free-disk", "4096TiB")
	eventually(t, "the status says that rewriting is held", func() bool {
		_, text := get(t, http.MethodGet, up.url+"/v1/status", "")
		var st struct {
			Held string `json:"rewriting_held"`
		}
		return json.Unmarshal([]byte(text), &st) == nil && strings.Contains(st.Held, "--min-free-disk is 4")
	})
	if code, text := get(t, http.MethodGet, up.url+"/readyz", ""); code != http.StatusServiceUnavailable || !strings.Contains(text, "settled objects wait for it, too") {
		t.Errorf("%d %s", code, text)
	}
	if _, text := get(t, http.MethodGet, up.url+"/metrics", ""); !strings.Contains(text, "strandline_rewriting_held 1") {
		t.Error("no metric tells of it")
	}
	seen := float64(time.Now().UnixNano()) / 1e9
	eventually(t, "a pass of settle that began since has ended", func() bool {
		began, n := seriesOf(scraped(t, up.url), "strandline_duty_last_success_timestamp_seconds", "duty=settle")
		return n == 1 && began > seen
	})
	if n := settled(); n != 0 || !strings.Contains(up.errs.String(), "rewriting is held") {
		t.Errorf("%d packs: %s", n, up.errs)
	}
	up.end(t)
	startUp(t, dir, "--settle-age", "0s")
	eventually(t, "it settles", func() bool { return settled() > 0 })
}

// TestRewriteRoomOf: a disk is looked at if the bucket shares it with --dir, and a bound is set.
func TestRewriteRoomOf(t *testing.T) {
	for _, c := range []struct {
		store string
		least int64
		want  bool
	}{{"file://" + t.TempDir(), 1, true}, {"file://" + t.TempDir(), -1, false}, {"file:///proc", 1, false}} {
		tr := &tier{dir: t.TempDir(), classes: storeNamed(t, c.store)}
		if got := rewriteRoomOf(tr, &localtier.Config{MinFreeDisk: c.least}, slog.New(slog.DiscardHandler)); (got != nil) != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// diskNamed is a store that says where it is.
type diskNamed struct {
	*memstore.Driver
	name string
}

func (d diskNamed) Name() string { return d.name }

func storeNamed(t *testing.T, name string) objstore.Classes {
	t.Helper()
	store, err := objstore.New(diskNamed{memstore.New(memstore.Options{}), name}, objstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return objstore.Classes{"standard": {store}}
}
