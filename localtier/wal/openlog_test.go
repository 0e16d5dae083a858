package wal_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Fprintln(os.Stderr, child(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const shardDir = "/data/writer/00000001.00000002"

var testChain = segment.Chain{Epoch: 1, Shard: 2}

func config(fsys wal.FS) wal.Config {
	return wal.Config{
		SegmentBytes: segment.MinSegmentBytes,
		SegmentAge:   time.Hour,
		FS:           fsys,
		NextStart:    func(*segment.Start) error { return nil },
	}
}

// recorder is a sink that keeps what it is given.
type recorder struct {
	rows    []segment.Row
	streams []string
	kinds   []segment.Kind
	offsets []wal.Offset
}

func (r *recorder) take(p wal.Replayed) error {
	r.kinds = append(r.kinds, p.Frame.Kind)
	r.offsets = append(r.offsets, p.Offset)
	if p.Frame.Kind != segment.KindBatch {
		return nil
	}
	b, err := segment.DecodeBatch(p.Frame.Payload)
	if err != nil {
		return err
	}
	for _, row := range b.Rows {
		row.Payload = slices.Clone(row.Payload)
		r.rows = append(r.rows, row)
		r.streams = append(r.streams, b.Stream)
	}
	return nil
}

func (r *recorder) payloads() []string {
	out := make([]string, len(r.rows))
	for i, row := range r.rows {
		out[i] = string(row.Payload)
	}
	return out
}

// gapless fails unless the rows' seqs run 1, 2, 3 …
func (r *recorder) gapless(t testing.TB) {
	t.Helper()
	for i, row := range r.rows {
		if row.Seq != segment.Seq(i+1) {
			t.Fatalf("row %d of the replay has seq %d", i, row.Seq)
		}
	}
}

func open(t testing.TB, fsys wal.FS) (*wal.Log, *recorder) {
	t.Helper()
	r := &recorder{}
	l, err := wal.Open(t.Context(), shardDir, config(fsys), r.take)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return l, r
}

// fresh is a log with its first segment begun.
func fresh(t testing.TB, fsys wal.FS) *wal.Log {
	t.Helper()
	l, _ := open(t, fsys)
	begin(t, l)
	return l
}

func begin(t testing.TB, l *wal.Log) {
	t.Helper()
	if err := l.StartSegment(t.Context(), segment.Start{Chain: testChain, ID: 1, Base: 1, Term: 1}); err != nil {
		t.Fatalf("start segment: %v", err)
	}
}

func batch(payloads ...string) *segment.Batch {
	b := &segment.Batch{Stream: "orders"}
	for i, p := range payloads {
		b.Rows = append(b.Rows, segment.Row{Time: int64(1000 + i), Payload: []byte(p)})
	}
	return b
}

func put(l *wal.Log, payloads ...string) (wal.Offset, error) {
	t, err := l.AppendBatch(context.Background(), batch(payloads...))
	if err != nil {
		return wal.Offset{}, err
	}
	return t.Wait(context.Background())
}

func mustPut(t testing.TB, l *wal.Log, payloads ...string) wal.Offset {
	t.Helper()
	o, err := put(l, payloads...)
	if err != nil {
		t.Fatalf("append %q: %v", payloads, err)
	}
	return o
}

func mustClose(t testing.TB, l *wal.Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func mustSeal(t testing.TB, l *wal.Log) {
	t.Helper()
	if ok, err := l.Seal(t.Context()); err != nil || !ok {
		t.Fatalf("seal: %v, %v", ok, err)
	}
}

// stop closes a log that is expected to be broken: its error is the test's
// business elsewhere.
func stop(l *wal.Log) { _ = l.Close() }

// bg is for calls that outlive no test.
var bg = context.Background()

func tornFile(id segment.ID) string { return shardDir + "/" + segment.TornName(id) }

func segFile(id segment.ID) string { return shardDir + "/" + segment.FileName(id) }

func wantRows(t testing.TB, r *recorder, want ...string) {
	t.Helper()
	r.gapless(t)
	if got := r.payloads(); !slices.Equal(got, want) {
		t.Fatalf("replayed %s, want %s", brief(got), brief(want))
	}
}

func brief(s []string) string {
	if len(s) > 12 {
		return fmt.Sprintf("%d rows %.20q … %.20q", len(s), s[0], s[len(s)-1])
	}
	return fmt.Sprintf("%.20q", s)
}

// wantCorrupt opens and wants a *segment.CorruptionError, and not one byte of
// any segment changed or gone.
func wantCorrupt(t testing.TB, fsys *powercut.FS, about string) *segment.CorruptionError {
	t.Helper()
	before := fsys.Dump()
	l, err := wal.Open(context.Background(), shardDir, config(fsys), (&recorder{}).take)
	if err == nil {
		stop(l)
		t.Fatalf("%s: opened without an error", about)
	}
	var c *segment.CorruptionError
	if !errors.As(err, &c) || !errors.Is(err, segment.ErrCorrupt) {
		t.Fatalf("%s: error is %v, want a *segment.CorruptionError", about, err)
	}
	sameFiles(t, before, fsys.Dump(), about)
	return c
}

// sameFiles compares everything but LOCK.
func sameFiles(t testing.TB, before, after map[string][]byte, about string) {
	t.Helper()
	drop := func(name string, _ []byte) bool { return strings.HasSuffix(name, "/LOCK") }
	maps.DeleteFunc(before, drop)
	maps.DeleteFunc(after, drop)
	for name, b := range before {
		if string(after[name]) != string(b) {
			t.Fatalf("%s: %s was changed or is gone", about, name)
		}
	}
	if len(after) != len(before) {
		t.Fatalf("%s: %d files became %d", about, len(before), len(after))
	}
}
