package wal_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// receiver is seed 001's fake receiver: it decodes, appends, waits for the
// fdatasync, answers. synced is set outside the fdatasync, once the log has said
// that it returned: a probe inside would be true in the middle of the call.
type receiver struct {
	l      *wal.Log
	synced atomic.Bool
	acks   atomic.Int32
	// unsynced is asserted wherever nothing may be durable yet.
	unsynced func(step string)
}

func (r *receiver) accept(b *segment.Batch) error {
	r.unsynced("decode")
	ticket, err := r.l.AppendBatch(bg, b)
	if err != nil {
		return err // no sync, no answer
	}
	r.unsynced("append")
	if _, err := ticket.Wait(bg); err != nil {
		return err // no answer
	}
	r.synced.Store(true)
	r.acks.Add(1)
	return nil
}

// Scenario RFC0008.1: an acknowledgement comes after the fdatasync that covers it
// has returned, and a fault before that suppresses it.
func TestRFC0008_1_WALBeforeAck(t *testing.T) {
	t.Run("ack only after sync returned", rfc1Probe)
	t.Run("unflushed bytes in between", rfc1Unflushed)
	t.Run("fault at append", rfc1AppendFault)
	t.Run("fault at write", rfc1WriteFault)
	t.Run("fault at sync", rfc1SyncFault)
}

// rfc1Probe holds the fdatasync at its beginning, and again at its end when the
// bytes are durable and the call has not returned: neither lets an answer out.
func rfc1Probe(t *testing.T) {
	for _, receivers := range []int{1, 8} {
		synctest.Test(t, func(t *testing.T) {
			gate, entered := make(chan struct{}), make(chan struct{})
			hold := func() { entered <- struct{}{}; <-gate }
			fsys := &hookFS{FS: powercut.New()}
			l := fresh(t, fsys)
			fsys.before, fsys.after = hold, hold
			r := &receiver{l: l}
			r.unsynced = func(step string) {
				if r.synced.Load() {
					t.Errorf("%s: something is durable already", step)
				}
			}
			var wg sync.WaitGroup
			for range receivers {
				wg.Go(func() {
					if err := r.accept(batch("row")); err != nil {
						t.Error(err)
					}
				})
			}
			// The first group may be one receiver's alone; the rest is the second.
			for acked := int32(0); acked < int32(receivers); acked = r.acks.Load() {
				for _, where := range []string{"at its beginning", "at its end"} {
					<-entered
					synctest.Wait() // everybody who can go on has gone on
					if got := r.acks.Load(); got != acked {
						t.Errorf("fdatasync held %s: %d answers, want %d", where, got, acked)
					}
					if acked == 0 {
						r.unsynced("fdatasync held " + where)
					}
					gate <- struct{}{}
				}
				synctest.Wait()
				if r.acks.Load() == acked {
					t.Error("no answer after the fdatasync returned")
					break
				}
			}
			wg.Wait()
			fsys.before, fsys.after = nil, nil
			mustClose(t, l)
		})
	}
}

func rfc1Unflushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		fsys := &hookFS{FS: powercut.New()}
		l := fresh(t, fsys)
		fsys.before = func() { <-gate }
		if n := l.Unflushed(); n != 0 {
			t.Errorf("%d bytes unflushed before anything was appended", n)
		}
		first, err := l.AppendBatch(bg, batch("one"))
		must(t, err)
		one := l.Unflushed()
		second, err := l.AppendBatch(bg, batch("two", "three"))
		must(t, err)
		synctest.Wait()
		if two := l.Unflushed(); one <= 0 || two <= one || l.Metrics().Unflushed != two {
			t.Errorf("unflushed: %d after one append, %d after two", one, two)
		}
		close(gate)
		for _, ticket := range []wal.Ticket{first, second} {
			_, err := ticket.Wait(bg)
			must(t, err)
		}
		if n := l.Unflushed(); n != 0 {
			t.Errorf("%d bytes unflushed after the sync", n)
		}
		mustClose(t, l)
	})
}

// rfc1AppendFault: an append that is refused reaches neither disk nor client.
func rfc1AppendFault(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	defer mustClose(t, l)
	r := &receiver{l: l, unsynced: func(string) {}}
	from, before := len(fsys.Ops()), l.State()
	huge := batch("")
	huge.Rows[0].Payload = make([]byte, segment.MaxFrameBytes)
	for name, b := range map[string]*segment.Batch{
		"over the frame cap": huge,
		"no name":            {Rows: batch("row").Rows},
		"no rows":            {Stream: "orders"},
		"name too long":      {Stream: strings.Repeat("n", segment.MaxStreamName+1), Rows: batch("row").Rows},
	} {
		if err := r.accept(b); !errors.Is(err, segment.ErrTooLarge) && !errors.Is(err, segment.ErrInvalid) && !errors.Is(err, segment.ErrName) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, l.Sync(bg))
	if got := l.State(); got.Next != before.Next || got.Durable != before.Durable || l.Unflushed() != 0 {
		t.Errorf("refused appends moved the log from %+v to %+v", before, got)
	}
	if ops := fsys.Ops()[from:]; len(ops) != 0 || r.acks.Load() != 0 {
		t.Errorf("refused appends reached the disk: %v, and %d answers went out", ops, r.acks.Load())
	}
}

// rfc1WriteFault: the write fails under the append. No fdatasync is asked for, no
// answer goes out, and no boot has the row.
func rfc1WriteFault(t *testing.T) {
	for _, part := range []int{0, 7, 40} {
		fsys := powercut.New()
		l := fresh(t, fsys)
		mustPut(t, l, "acked")
		r := &receiver{l: l, unsynced: func(string) {}}
		from := len(fsys.Ops())
		hit := fsys.FailNth(powercut.KindWrite, 1, &powercut.PartError{N: part, Err: syscall.EIO})
		if err := r.accept(batch("refused")); !errors.Is(err, syscall.EIO) || !hit() {
			t.Fatalf("a write that fails after %d bytes: %v", part, err)
		}
		for _, op := range fsys.Ops()[from:] {
			if op.Kind == powercut.KindSync {
				t.Errorf("a sync of %s after the write failed", op.Path)
			}
		}
		if r.acks.Load() != 0 {
			t.Error("an answer went out")
		}
		stop(l)
		l, rec := open(t, fsys.Cut(0))
		wantRows(t, rec, "acked")
		mustClose(t, l)
	}
}

// rfc1SyncFault: no answer, the error as it is, now and for every later append;
// a reopen shows at most what a boot keeps.
func rfc1SyncFault(t *testing.T) {
	fsys := powercut.New()
	l := fresh(t, fsys)
	mustPut(t, l, "acked")
	r := &receiver{l: l, unsynced: func(string) {}}
	hit := fsys.FailNth(powercut.KindSync, 1, syscall.EIO)
	for i := range 3 {
		if err := r.accept(batch("refused")); !errors.Is(err, syscall.EIO) || !errors.Is(err, wal.ErrPoisoned) || !hit() {
			t.Fatalf("append %d over a failed sync: %v", i, err)
		}
	}
	if err := l.Sync(bg); !errors.Is(err, wal.ErrPoisoned) || r.acks.Load() != 0 || r.synced.Load() {
		t.Errorf("sync: %v; %d answers", err, r.acks.Load())
	}
	stop(l)
	l, rec := open(t, fsys.Cut(0))
	wantRows(t, rec, "acked")
	mustClose(t, l)
}
