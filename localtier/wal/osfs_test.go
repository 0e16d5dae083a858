package wal_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// On the real file system: make, append, rotate, reopen, read, housekeep.
func TestRealDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "writer", testChain.String())
	l, err := wal.Open(t.Context(), dir, config(nil), nil)
	must(t, err)
	begin(t, l)
	for i := range 10 {
		mustPut(t, l, fmt.Sprint(i))
		if i%4 == 3 {
			mustSeal(t, l)
		}
	}
	sealed := l.Sealed()
	must(t, l.Checkpoint(t.Context(), sealed[0].End()))
	if removed, err := l.Housekeep(t.Context(), wal.NoFloor); err != nil || len(removed) != 1 {
		t.Fatalf("housekeep: %v, %v", removed, err)
	}
	seg, err := l.OpenSegment(sealed[1].ID)
	must(t, err)
	sc, err := segment.NewScanner(seg, seg.Size())
	must(t, err)
	for err == nil {
		_, err = sc.Next()
	}
	if sc.Sealed() == nil || sc.Sealed().Digest != sealed[1].Digest {
		t.Fatalf("the sealed segment does not read as whole: %v", err)
	}
	must(t, seg.Close())
	mustClose(t, l)
	r := &recorder{}
	l, err = wal.Open(t.Context(), dir, config(nil), r.take)
	must(t, err)
	if got := strings.Join(r.payloads(), ""); got != "456789" {
		t.Fatalf("replayed %q", got)
	}
	mustClose(t, l)
}

func TestRealDirectoryFaultsAreClear(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := wal.Open(t.Context(), file, config(nil), nil); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file as directory: %v", err)
	}
	if _, err := wal.Open(t.Context(), filepath.Join(file, "sub"), config(nil), nil); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a directory below a file: %v", err)
	}
}

// childDir names the directory that the child process of these tests works in.
const childDir = "WAL_TEST_CHILD_DIR"

// child is the process that these tests start, lock against and kill: it appends
// rows for ever and says which are acknowledged.
func child(dir string) error {
	l, err := wal.Open(bg, dir, config(nil), (&recorder{}).take)
	if err != nil {
		return err
	}
	if l.State().Segment == 0 {
		if err := l.StartSegment(bg, segment.Start{Chain: testChain, ID: 1, Base: 1, Term: 1}); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	for {
		b := batch(fmt.Sprintf("row %d", l.State().Next))
		ticket, err := l.AppendBatch(bg, b)
		if err != nil {
			return err
		}
		if _, err := ticket.Wait(bg); err != nil {
			return err
		}
		fmt.Println("acked", b.First)
	}
}

func startChild(t *testing.T, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = &bytes.Buffer{}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "ready") {
			return cmd, lines
		}
	}
	t.Fatalf("the child did not begin: %v: %v", cmd.Wait(), cmd.Stderr)
	return nil, nil
}

func TestLockNamesTheHoldersPID(t *testing.T) {
	dir := t.TempDir()
	cmd, _ := startChild(t, dir)
	_, err := wal.Open(t.Context(), dir, config(nil), nil)
	var held *wal.LockedError
	if !errors.As(err, &held) || held.PID != cmd.Process.Pid || !strings.Contains(err.Error(), strconv.Itoa(held.PID)) {
		t.Errorf("second open: %v, want pid %d", err, cmd.Process.Pid)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed: its state is no news
	l, err := wal.Open(t.Context(), dir, config(nil), nil)
	must(t, err) // the lock died with its holder
	mustClose(t, l)
}

// SIGKILL at random moments under load, on one directory: every acknowledged row
// is there after each restart, in order, once.
func TestKilledProcess(t *testing.T) {
	dir := t.TempDir()
	kills := 8
	if testing.Short() {
		kills = 2
	}
	acked := segment.Seq(0)
	for i := range kills {
		cmd, lines := startChild(t, dir)
		for n := 0; n < 20*(i+1) && lines.Scan(); n++ {
			if _, s, ok := strings.Cut(lines.Text(), "acked "); ok {
				seq, err := strconv.ParseUint(s, 10, 64)
				must(t, err)
				acked = segment.Seq(seq)
			}
		}
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed: its state is no news
		r := &recorder{}
		begin := time.Now()
		l, err := wal.Open(t.Context(), dir, config(nil), r.take)
		must(t, err)
		t.Logf("kill %d: %d acknowledged, %d replayed, opened in %v", i, acked, len(r.rows), time.Since(begin))
		r.gapless(t)
		if segment.Seq(len(r.rows)) < acked {
			t.Fatalf("%d rows acknowledged, %d survive", acked, len(r.rows))
		}
		for i, row := range r.rows {
			if want := fmt.Sprintf("row %d", i+1); string(row.Payload) != want {
				t.Fatalf("row %d is %q", i+1, row.Payload)
			}
		}
		mustClose(t, l)
	}
}
