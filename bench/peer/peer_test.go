package peer

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// options keeps everything, so that everything can be counted.
var options = Options{SegmentBytes: 32 << 20, Keep: true}

const (
	smokeProducers = 4
	smokeEach      = 25
	recordBytes    = 1000
)

// TestEveryPeerKeepsItsRows: no log is measured that loses what it acknowledged, or
// delivers it twice, or changes it.
func TestEveryPeerKeepsItsRows(t *testing.T) {
	for _, p := range All() {
		if p.Replay == nil {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel() // most of it is fsyncs
			dir := filepath.Join(t.TempDir(), "log")
			l := open(t, p, dir)
			appendAll(t, l, 0)
			// Everything is acknowledged and nothing closed: what a killed process leaves.
			killed := filepath.Join(t.TempDir(), "killed")
			if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			mustClose(t, l)
			count(t, p, killed, 1)
			count(t, p, dir, 1)
			l = open(t, p, dir)
			appendAll(t, l, 1)
			mustClose(t, l)
			count(t, p, dir, 2)
			l = open(t, p, killed)
			appendAll(t, l, 1)
			mustClose(t, l)
			count(t, p, killed, 2)
		})
	}
}

// TestSparesAreWrittenOver: files that are lent to a log become its segments, give back
// what was written last and nothing of before, and are taken back.
func TestSparesAreWrittenOver(t *testing.T) {
	for _, p := range []Peer{strandlineWAL, strandlineShard} {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			lender, dir := filepath.Join(t.TempDir(), "spares"), filepath.Join(t.TempDir(), "log")
			spares, err := NewSpares(lender, options.SegmentBytes)
			if err != nil {
				t.Fatal(err)
			}
			if err := spares.Lend(p.SpareDir(dir), 2); err != nil {
				t.Fatal(err)
			}
			lent := files(t, p.SpareDir(dir), "spare-*.free")
			o := options
			o.Spares = len(lent)
			l, err := p.Open(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			appendAll(t, l, 0)
			used := files(t, p.SpareDir(dir), "*.seg")
			if len(lent) != 2 || len(used) != 1 || (!os.SameFile(used[0], lent[0]) && !os.SameFile(used[0], lent[1])) {
				t.Errorf("%d files were lent, the log is in %d others", len(lent), len(used))
			}
			mustClose(t, l)
			count(t, p, dir, 1)
			if err := spares.TakeBack(dir); err != nil {
				t.Fatal(err)
			}
			if back := files(t, lender, "*"); len(back) == 0 {
				t.Error("no file came back")
			}
		})
	}
}

func files(t *testing.T, dir, pattern string) (out []os.FileInfo) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, info)
	}
	return out
}

// TestRotation: nothing is lost where a file ends and the next begins.
func TestRotation(t *testing.T) {
	const size, n = 1 << 20, 70
	for _, p := range All() {
		if p.Replay == nil {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "log")
			l := open(t, p, dir)
			send, rec := l.Producer(0), make([]byte, size/2)
			for i := range n {
				binary.LittleEndian.PutUint64(rec, uint64(i))
				if err := send(rec); err != nil {
					t.Fatal(err)
				}
			}
			mustClose(t, l)
			next := uint64(0)
			err := p.Replay(dir, options, func(rec []byte) error {
				if got := binary.LittleEndian.Uint64(rec); got != next || len(rec) != size/2 {
					t.Fatalf("record %d of %d bytes where %d was due", got, len(rec), next)
				}
				next++
				return nil
			})
			if err != nil || next != n {
				t.Fatalf("%d of %d records: %v", next, n, err)
			}
		})
	}
}

// TestCommitterPassesErrorsOn: who was in a batch that failed is told, and so is who
// comes after Close.
func TestCommitterPassesErrorsOn(t *testing.T) {
	log := &brokenLog{}
	c := commitFor(log)
	if err := c.append([]byte("a")); err != nil {
		t.Fatal(err)
	}
	log.err = errors.New("disk gone")
	if err := c.append([]byte("b")); !errors.Is(err, log.err) {
		t.Fatalf("acknowledged with %v", err)
	}
	mustClose(t, c)
	if err := c.append([]byte("c")); !errors.Is(err, errClosed) {
		t.Fatalf("after close: %v", err)
	}
}

type brokenLog struct{ err error }

func (l *brokenLog) appendBatch([][]byte) error { return l.err }
func (l *brokenLog) Close() error               { return nil }

// TestBare: both files take more than their size.
func TestBare(t *testing.T) {
	for _, p := range []Peer{bareGrow, bareOverwrite} {
		l, err := p.Open(t.TempDir(), Options{SegmentBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		send := l.Producer(0)
		for range 40 {
			if err := send(make([]byte, 64<<10)); err != nil {
				t.Fatal(err)
			}
		}
		info, err := l.(*bare).file.Stat()
		if err != nil || (info.Size() > 1<<20) == (p.Name == bareOverwrite.Name) {
			t.Errorf("%s: %d bytes, %v", p.Name, info.Size(), err)
		}
		mustClose(t, l)
	}
}

func open(t *testing.T, p Peer, dir string) Log {
	t.Helper()
	l, err := p.Open(dir, options)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return l
}

func mustClose(t *testing.T, l Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

// appendAll appends the records of a round, by several producers at once.
func appendAll(t *testing.T, l Log, round int) {
	t.Helper()
	var wg sync.WaitGroup
	for n := range smokeProducers {
		send := l.Producer(n)
		wg.Go(func() {
			for i := range smokeEach {
				if err := send(smokeRecord(round, n, i)); err != nil {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func smokeRecord(round, n, i int) []byte {
	rec := make([]byte, recordBytes)
	for at := range rec {
		rec[at] = byte(at * (1 + round + n*7 + i*13))
	}
	rec[0], rec[1], rec[2] = byte(round), byte(n), byte(i)
	return rec
}

// count wants every record of so many rounds once and unchanged, those of each
// producer in order.
func count(t *testing.T, p Peer, dir string, rounds int) {
	t.Helper()
	var next [smokeProducers]int
	err := p.Replay(dir, options, func(rec []byte) error {
		if len(rec) != recordBytes || rec[1] >= smokeProducers {
			t.Fatalf("a record of %d bytes that nobody wrote", len(rec))
		}
		n := int(rec[1])
		if want := smokeRecord(next[n]/smokeEach, n, next[n]%smokeEach); string(rec) != string(want) {
			t.Fatalf("producer %d: record %v where %v was due", n, rec[:3], want[:3])
		}
		next[n]++
		return nil
	})
	if err != nil {
		t.Fatalf("replay of %s: %v", dir, err)
	}
	for n, got := range next {
		if got != rounds*smokeEach {
			t.Errorf("producer %d: %d records, appended were %d", n, got, rounds*smokeEach)
		}
	}
}
