package wal_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// The child of RFC0008.2 and .7 is this test binary with these in its
// environment.
const (
	rfcChildMode = "RFC0008_CHILD"
	rfcChildDir  = "RFC0008_DIR"
	rfcChildAt   = "RFC0008_AT"
)

func init() {
	if mode := os.Getenv(rfcChildMode); mode != "" {
		at, err := strconv.Atoi(os.Getenv(rfcChildAt))
		if err == nil {
			err = rfcChild(mode, os.Getenv(rfcChildDir), at)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The places where the child stands still and waits for its SIGKILL.
const (
	modeBeforeSync = "before sync"
	modeAfterSync  = "after sync, before the ack"
	modeHalfWrite  = "in a write, its first half there"
	modeHoleWrite  = "in a write, its second half there"
	modeCheckpoint = "after checkpoint, before housekeeping"
)

// rfcRow is the one payload that seq may have; system records go the same way.
func rfcRow(seq segment.Seq) (stream, payload string) {
	if seq%3 == 0 {
		stream = segment.AuditStream(testChain.Shard)
	} else {
		stream = "orders"
	}
	return stream, fmt.Sprintf("%s %d %s", stream, seq, strings.Repeat("r", int(seq%7)*700))
}

// rfcChild appends groups of rows for ever and tells what it knows, a line each:
// "acked N", "synced N", and "here" when it stands still at the place asked for.
func rfcChild(mode, dir string, at int) error {
	var synced, written, appended atomic.Uint64
	var n atomic.Int64 // segment writes or syncs since it began
	n.Store(-1 << 40)
	here := func() {
		fmt.Println("here", appended.Load())
		select {} // SIGKILL ends it
	}
	fsys := &hookFS{FS: wal.OSFS(false)}
	fsys.write = func(f wal.File, p []byte, off int64) (int, error) {
		half := len(p) / 2
		last := lastRow(p)
		switch {
		case last == 0: // a header, a Seal, zeros ahead of the writer
		case mode == modeHalfWrite && n.Add(1) == int64(at):
			_, _ = f.WriteAt(p[:half], off)
			here()
		case mode == modeHoleWrite && n.Add(1) == int64(at):
			_, _ = f.WriteAt(p[half:], off+int64(half))
			here()
		}
		if last != 0 {
			written.Store(uint64(last))
		}
		return f.WriteAt(p, off)
	}
	fsys.before = func() {
		if mode == modeBeforeSync && n.Add(1) == int64(at) {
			here()
		}
	}
	fsys.after = func() {
		synced.Store(written.Load())
		fmt.Println("synced", synced.Load())
		if mode == modeAfterSync && n.Add(1) == int64(at) {
			here()
		}
	}
	cfg := config(fsys)
	cfg.BatchWindow = 10 * time.Second // a group is what was appended before Sync
	l, err := wal.Open(bg, dir, cfg, nil)
	if err != nil {
		return err
	}
	if l.State().Segment == 0 {
		if err := l.StartSegment(bg, segment.Start{Chain: testChain, ID: 1, Base: 1, Term: 1}); err != nil {
			return err
		}
	}
	n.Store(0)
	for group := 1; ; group++ {
		for range 1 + group%5 {
			seq := l.State().Next
			stream, payload := rfcRow(seq)
			if _, err := l.AppendBatch(bg, &segment.Batch{Stream: stream, Rows: []segment.Row{{Payload: []byte(payload)}}}); err != nil {
				return err
			}
			appended.Store(uint64(seq))
		}
		if group%6 == 0 {
			_, err = l.Seal(bg)
		} else {
			err = l.Sync(bg)
		}
		if err != nil {
			return err
		}
		fmt.Println("acked", appended.Load())
		if mode == modeCheckpoint && group == at {
			if err := childCheckpoint(l); err != nil {
				return err
			}
			here()
		}
	}
}

// told is what a child said before it was killed.
type told struct {
	numbers map[string]uint64
	rest    map[string]string
}

// killedChild starts a child, waits until it stands still and kills it.
func killedChild(t *testing.T, mode, dir string, at int) told {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), rfcChildMode+"="+mode, rfcChildDir+"="+dir, rfcChildAt+"="+strconv.Itoa(at))
	stderr := &bytes.Buffer{}
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	says := told{map[string]uint64{}, map[string]string{}}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		says.rest[word] = rest
		if v, err := strconv.ParseUint(rest, 10, 64); err == nil {
			says.numbers[word] = v
		}
		if says.numbers["acked"] > says.numbers["synced"] { // the lines come in the order of what they tell
			t.Errorf("row %d was acknowledged when rows to %d were fsynced", says.numbers["acked"], says.numbers["synced"])
		}
		if word == "here" {
			break
		}
	}
	if _, ok := says.rest["here"]; !ok {
		t.Fatalf("the child ended by itself: %v: %s", cmd.Wait(), stderr)
	}
	must(t, cmd.Process.Kill())
	err = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed: %v", err)
	}
	return says
}

// Scenario RFC0008.2: SIGKILL between append and sync, and between sync and
// acknowledgement. Every frame that was fsynced is there; one that was not is
// replayed whole or cut with the torn tail, and never corruption: the page cache
// outlives the process, and a torn tail is told from damage.
func TestRFC0008_2_CrashRecoveryCompleteness(t *testing.T) {
	kills := 6
	if testing.Short() {
		kills = 2
	}
	for _, mode := range []string{modeBeforeSync, modeAfterSync, modeHalfWrite, modeHoleWrite} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			rng := rand.New(rand.NewPCG(uint64(len(mode)), 8))
			var buckets rfcBuckets
			for range kills {
				says := killedChild(t, mode, dir, 3+rng.IntN(25))
				buckets.sort(t, mode, dir, says)
			}
			t.Logf("%d kills: %+v", kills, buckets)
			buckets.check(t, mode)
		})
	}
}

// rfcBuckets counts what became of frames that were appended and not fsynced.
type rfcBuckets struct{ Replayed, Cut, Synced, Acked uint64 }

// sort opens the directory as the next process does.
func (k *rfcBuckets) sort(t *testing.T, mode, dir string, says told) {
	t.Helper()
	acked, synced, appended := says.numbers["acked"], says.numbers["synced"], says.numbers["here"]
	if acked > synced || synced > appended {
		t.Fatalf("%d acknowledged, %d fsynced, %d appended: an acknowledgement before its fdatasync", acked, synced, appended)
	}
	if mode == modeAfterSync && synced == 0 {
		t.Fatal("the child never fsynced a row")
	}
	torn := len(tornFiles(t, dir))
	r := &recorder{}
	l, err := wal.Open(t.Context(), dir, config(nil), r.take)
	if err != nil {
		t.Fatalf("after SIGKILL %s: %v", mode, err)
	}
	defer mustClose(t, l)
	r.gapless(t)
	n := uint64(len(r.rows))
	if n < synced {
		t.Fatalf("%d rows were fsynced, %d survive", synced, n)
	}
	if n > appended {
		t.Fatalf("%d rows were appended, %d survive", appended, n)
	}
	for i, row := range r.rows {
		if stream, payload := rfcRow(row.Seq); r.streams[i] != stream || string(row.Payload) != payload {
			t.Fatalf("row %d is %.40q of %q, want %.40q of %q", row.Seq, row.Payload, r.streams[i], payload, stream)
		}
	}
	k.Replayed += n - synced
	k.Cut += appended - n
	k.Synced, k.Acked = k.Synced+synced, k.Acked+acked
	if grown := len(tornFiles(t, dir)) > torn; grown && appended == n {
		t.Error("something was cut though every frame survives")
	}
}

// check: an arm that never met its case proves nothing.
func (k rfcBuckets) check(t *testing.T, mode string) {
	t.Helper()
	if k.Acked == 0 {
		t.Error("no kill came after an acknowledgement")
	}
	switch {
	case mode == modeBeforeSync && k.Replayed == 0:
		t.Error("no frame was appended and not fsynced")
	case mode == modeAfterSync && k.Synced == k.Acked:
		t.Error("no frame was fsynced and not acknowledged")
	case (mode == modeHalfWrite || mode == modeHoleWrite) && k.Cut == 0:
		t.Error("no tail was torn")
	}
}

func tornFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.torn"))
	must(t, err)
	return names
}
