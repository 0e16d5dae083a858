package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/localtier"
)

// rewriteRoom holds an auditor's rewriting while the disk that its bucket shares with a
// writer's segments has less than --min-free-disk left: what it settles would fill the rest,
// and take the room of the log, and of the catalog. Deletes go on, since they make room. What
// is held is still owed, so it goes on by itself. A batch that began with more room than that
// may end with less: --settle-batch-max is its size.
type rewriteRoom struct {
	dir   string
	least int64
	free  func(dir string) (int64, error)
	log   *slog.Logger

	mu  sync.Mutex // why
	why string
}

// rewriteRoomOf is nil where nothing that is rewritten goes to the disk of --dir, or nobody
// wants it checked.
func rewriteRoomOf(t *tier, cfg *localtier.Config, log *slog.Logger) *rewriteRoom {
	if cfg.MinFreeDisk < 0 {
		return nil
	}
	for _, store := range storesOf(t) {
		if dir, local := strings.CutPrefix(store.Name(), "file://"); local && sameDisk(dir, t.dir) {
			return &rewriteRoom{dir: t.dir, least: cfg.MinFreeDisk, free: freeOf, log: log}
		}
	}
	return nil
}

// sameDisk says whether two directories share their free space. One that cannot be looked at
// is taken to: the check costs less than a full disk.
func sameDisk(a, b string) bool {
	var x, y unix.Stat_t
	return unix.Stat(a, &x) != nil || unix.Stat(b, &y) != nil || x.Dev == y.Dev
}

// need is what has to be free for a duty; 0: it writes nothing that counts. gc gives back more
// than it writes, one grace later, so it may use half of what is kept.
func (r *rewriteRoom) need(duty string) int64 {
	switch catalog.Duty(duty) {
	case catalog.DutySettle, catalog.DutyPackMerge, catalog.DutyTailFill:
		return r.least
	case catalog.DutyGC:
		return r.least / 2
	default:
		return 0
	}
}

// around is auditor.Deps.Around: next runs a pass, unless it is held.
func (r *rewriteRoom) around(next aroundDuty) aroundDuty {
	return func(ctx context.Context, duty string, run func(context.Context) (int, error)) (int, error) {
		if r.holds(duty) {
			return 0, nil
		}
		if next == nil {
			return run(ctx)
		}
		return next(ctx, duty, run)
	}
}

// aroundDuty runs a duty's pass.
type aroundDuty = func(ctx context.Context, duty string, run func(context.Context) (int, error)) (int, error)

func (r *rewriteRoom) holds(duty string) bool {
	need := r.need(duty)
	if need == 0 {
		return false
	}
	free, err := r.free(r.dir)
	if err != nil {
		return false // the writer is not ready for it, and says so
	}
	if duty == string(catalog.DutySettle) { // it runs always; the others say nothing of their own
		r.say(free)
	}
	return free < need
}

// say tells of a hold once, and of its end.
func (r *rewriteRoom) say(free int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.why
	r.why = ""
	if free < r.least {
		r.why = fmt.Sprintf("%s had %s left, --min-free-disk is %s: nothing is settled, merged or filled up until there is more room; deletes go on",
			r.dir, bytesText(free), bytesText(r.least))
	}
	switch {
	case before == "" && r.why != "":
		r.log.Warn("rewriting is held: the bucket is on the disk of --dir, which is nearly full", "why", r.why)
	case before != "" && r.why == "":
		r.log.Info("rewriting goes on: the disk has room again", "dir", r.dir, "free", free)
	}
}

// held is why nothing is rewritten; "": it is.
func (r *rewriteRoom) held() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

// freeOf is what is left for us on the file system of a directory.
func freeOf(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("how full is %s: %w", dir, err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:gosec,unconvert // no disk passes an int64; the types differ by platform
}
