package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/catalog"
	"github.com/strandline/strandline/segment"
)

// The test binary runs itself as another process, in one of these modes.
const (
	childMode = "CATALOG_TEST_CHILD"
	childPath = "CATALOG_TEST_PATH"
	childID   = "CATALOG_TEST_ID"

	modeAbsorb = "absorb" // absorb slots until killed, saying each that was answered
	modeStall  = "stall"  // stop inside a transaction, with the outer lock held
	modeTurns  = "turns"  // write until stdin ends, saying each write
	modeBroken = "broken" // write while the log cannot grow, then again
)

func TestMain(m *testing.M) {
	mode := os.Getenv(childMode)
	if mode == "" {
		os.Exit(m.Run())
	}
	if err := child(mode); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

func child(mode string) error {
	ctx := context.Background()
	d, err := Open(ctx, Options{Path: os.Getenv(childPath), Create: true})
	if err != nil {
		return err
	}
	switch mode {
	case modeAbsorb:
		return childAbsorb(ctx, d)
	case modeStall:
		return d.write(ctx, "stall", func(t *tx) error {
			if err := t.audit("never", "", ""); err != nil {
				return err
			}
			fmt.Println("in")
			select {}
		})
	case modeTurns:
		return childTurns(ctx, d)
	case modeBroken:
		return childBroken(ctx, d)
	}
	return fmt.Errorf("mode %q", mode)
}

var testChain = segment.Chain{Epoch: 1}

func uuidOf(n uint64) (u segment.UUID) {
	u[0] = 1
	for i := range 8 {
		u[15-i] = byte(n >> (8 * i))
	}
	return u
}

// slotOf is the n-th slot of a chain in which every slot has one row of each stream.
func slotOf(n uint64, streams int, term segment.Term) catalog.Absorb {
	id := segment.ID(n)
	first := segment.Seq((n-1)*uint64(streams) + 1)
	a := catalog.Absorb{
		Slot: catalog.SlotRow{Chain: testChain, ID: id, First: first, Next: first + segment.Seq(streams), Bytes: 1000, UUID: uuidOf(n), Digest: n, Term: term},
		Key:  segment.SlotKey(testChain, id), Class: "express",
	}
	if n > 1 {
		a.Slot.Prev = uuidOf(n - 1)
	}
	a.Refs = make([]catalog.Ref, streams)
	for i := range streams {
		seq := first + segment.Seq(i)
		a.Refs[i] = catalog.Ref{
			Stream: fmt.Sprintf("stream-%07d", i), Chain: testChain, First: seq, Last: seq, Kind: catalog.RefSlot, Revision: -1,
			Chunks: 1, Offset: int64(i) * 900, Stored: 700, Raw: 900, Codec: 1, CRC: 0xdeadbeef, Sum: 0x123456789abcdef0 + uint64(i),
			Rows: 1, RowSum: uint64(seq) * 0x9e3779b97f4a7c15, Bytes: 900, MinTime: 1790000000000000000 + int64(seq), MaxTime: 1790000000000000000 + int64(seq),
		}
	}
	return a
}

// prepareChain makes a catalog with one chain that has an owner at term 1.
func prepareChain(t testing.TB, d *DB) {
	t.Helper()
	ctx := context.Background()
	_, err := d.Init(ctx, uuidOf(7))
	if err == nil {
		_, err = d.EnsureTopology(ctx, catalog.Topology{Epoch: 1, Shards: 1, Class: "express", Buckets: []string{"b"}, Settle: true, State: catalog.TopologyOpen})
	}
	if err == nil {
		_, err = d.AcquireChain(ctx, catalog.Acquire{Chain: testChain, Owner: uuidOf(8), Lease: time.Hour})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func childAbsorb(ctx context.Context, d *DB) error {
	for n := uint64(1); ; n++ {
		if _, err := d.AbsorbSlot(ctx, slotOf(n, 50, 1)); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

func childTurns(ctx context.Context, d *DB) error {
	stop := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is the word to stop
		close(stop)
	}()
	for {
		select {
		case <-stop:
			return d.Close()
		default:
		}
		if err := d.Audit(ctx, "turn", os.Getenv(childID), ""); err != nil {
			return err
		}
		fmt.Println(os.Getenv(childID))
	}
}

// childBroken makes the commit itself fail: no file may grow past a byte.
func childBroken(ctx context.Context, d *DB) error {
	signal.Ignore(unix.SIGXFSZ)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1, Max: was.Max}); err != nil {
		return err
	}
	first := d.Audit(ctx, "first", "", "")
	second := d.Audit(ctx, "second", "", "")
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	third := d.Audit(ctx, "third", "", "")
	fmt.Println(errors.Is(first, catalog.ErrAmbiguous), second != nil, third == nil, first, "/", second, "/", third)
	return d.Close()
}

type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func startChild(t *testing.T, mode, path, id string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$") //nolint:gosec // the test's own binary
	cmd.Env = append(os.Environ(), childMode+"="+mode, childPath+"="+path, childID+"="+id)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, in, bufio.NewScanner(out)}
	t.Cleanup(p.kill)
	return p
}

// kill is SIGKILL, and waits until the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // gone already: as good
	_ = p.cmd.Wait()         // "signal: killed" is what was asked for
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("child ended: %v", p.lines.Err())
	}
	return strings.TrimSpace(p.lines.Text())
}

// TestKilledWhileWriting: whatever was answered before SIGKILL stands, whole, for a
// read-only opener first and for a writer after it.
func TestKilledWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	d, err := Open(context.Background(), Options{Path: path, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	prepareChain(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	answered := 0
	p := startChild(t, modeAbsorb, path, "")
	for range 20 {
		if answered, err = strconv.Atoi(p.line(t)); err != nil {
			t.Fatal(err)
		}
	}
	p.kill()

	for _, readOnly := range []bool{true, false} {
		d, err := Open(context.Background(), Options{Path: path, ReadOnly: readOnly})
		if err != nil {
			t.Fatalf("open, read-only %v: %v", readOnly, err)
		}
		checkAbsorbed(t, d, answered)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// checkAbsorbed: at least the slots answered, and of each slot all or nothing.
func checkAbsorbed(t *testing.T, d *DB, answered int) {
	t.Helper()
	ctx := context.Background()
	row, err := d.Chain(ctx, testChain)
	if err != nil {
		t.Fatal(err)
	}
	n := int(row.AbsorbedEnd) - 1
	if n < answered {
		t.Fatalf("%d slots were answered, %d stand", answered, n)
	}
	s, err := d.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Refs[catalog.RefSlot]; got != int64(n)*50 || s.Markers[catalog.DutySettle].Standing != int64(n) {
		t.Fatalf("%d slots, %d refs, %d markers", n, got, s.Markers[catalog.DutySettle].Standing)
	}
}

// TestKilledInsideTransaction: a process that dies with the outer lock held and rows
// written leaves neither.
func TestKilledInsideTransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	d := openAt(t, path, nil)
	prepareChain(t, d)
	p := startChild(t, modeStall, path, "")
	p.line(t)
	// While it lives it holds the lock: a verb waits, and its context withdraws it.
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := d.Audit(ctx, "mine", "", ""); !isUnavailable(err) {
		t.Fatalf("a verb behind a stalled writer: %v", err)
	}
	// Readers do not wait.
	if _, err := d.Chain(context.Background(), testChain); err != nil {
		t.Fatal(err)
	}
	p.kill()
	if err := d.Audit(context.Background(), "after", "", ""); err != nil {
		t.Fatal(err)
	}
	rows, err := d.AuditRows(context.Background(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Kind != "after" {
		t.Fatalf("audit rows %+v", rows)
	}
}

// TestReadOnlyWhileWriting: a read-only opener follows a writer of another process.
func TestReadOnlyWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	prepareChain(t, openAt(t, path, nil))
	p := startChild(t, modeAbsorb, path, "")
	p.line(t)
	d, err := Open(context.Background(), Options{Path: path, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 10 {
		n, err := strconv.Atoi(p.line(t))
		if err != nil {
			t.Fatal(err)
		}
		checkAbsorbedAtLeast(t, d, n)
	}
	if err := d.Audit(context.Background(), "x", "", ""); !isReadOnly(err) {
		t.Fatalf("a mutation on a read-only catalog: %v", err)
	}
}

func checkAbsorbedAtLeast(t *testing.T, d *DB, n int) {
	t.Helper()
	row, err := d.Chain(context.Background(), testChain)
	if err != nil {
		t.Fatal(err)
	}
	if int(row.AbsorbedEnd)-1 < n {
		t.Fatalf("slot %d was answered, absorbed_end is %d", n, row.AbsorbedEnd)
	}
}

// TestTurnstile: of four processes that write as fast as they can, each makes
// progress while the others go on.
func TestTurnstile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	openAt(t, path, nil)
	const processes, each = 4, 25
	ps := make([]*process, processes)
	for i := range ps {
		ps[i] = startChild(t, modeTurns, path, strconv.Itoa(i))
	}
	for _, p := range ps { // the others never stop meanwhile
		for range each {
			p.line(t)
		}
	}
	for _, p := range ps {
		if err := p.in.Close(); err != nil {
			t.Fatal(err)
		}
		for p.lines.Scan() { // until it ends
		}
		if err := p.cmd.Wait(); err != nil {
			t.Fatalf("child: %v", err)
		}
	}
}

// TestCommitFails: a commit whose record may have reached the log is ErrAmbiguous;
// nothing is written before the log was carried over; then the catalog goes on.
func TestCommitFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	prepareChain(t, openAt(t, path, nil))
	p := startChild(t, modeBroken, path, "")
	if got := p.line(t); !strings.HasPrefix(got, "true true true ") {
		t.Fatal(got)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	d := openAt(t, path, nil)
	rows, err := d.AuditRows(context.Background(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 || rows[len(rows)-1].Kind != "third" {
		t.Fatalf("rows %+v", rows)
	}
}

// TestTwoProcessesAbsorb: two processes absorb the same slots; each enters once.
func TestTwoProcessesAbsorb(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	d := openAt(t, path, nil)
	prepareChain(t, d)
	a, b := startChild(t, modeAbsorb, path, ""), startChild(t, modeAbsorb, path, "")
	last := 0
	for _, p := range []*process{a, b} {
		for range 30 {
			n, err := strconv.Atoi(p.line(t))
			if err != nil {
				t.Fatal(err)
			}
			last = max(last, n)
		}
	}
	a.kill()
	b.kill()
	checkAbsorbed(t, d, last)
}
