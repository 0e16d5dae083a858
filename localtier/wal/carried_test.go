package wal_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// putAs appends as an idempotent producer.
func putAs(t testing.TB, l *wal.Log, producer string, sequence uint64, payloads ...string) segment.Producer {
	t.Helper()
	b := batch(payloads...)
	b.Producer, b.Sequence = producer, sequence
	ticket, err := l.AppendBatch(t.Context(), b)
	must(t, err)
	_, err = ticket.Wait(t.Context())
	must(t, err)
	return segment.Producer{ID: producer, Sequence: sequence, First: b.First, Last: b.Last()}
}

func consume(t testing.TB, l *wal.Log, kind segment.Kind, name string, cursor segment.Seq) {
	t.Helper()
	ticket, err := l.AppendConsumer(t.Context(), kind, segment.Consumer{Name: name, Cursor: cursor})
	must(t, err)
	_, err = ticket.Wait(t.Context())
	must(t, err)
}

type carrier interface {
	Carried() ([]segment.Consumer, []segment.Producer)
}

func wantCarried(t testing.TB, about string, c carrier, consumers []segment.Consumer, producers []segment.Producer) {
	t.Helper()
	gotC, gotP := c.Carried()
	if !slices.Equal(gotC, consumers) || !slices.Equal(gotP, producers) {
		t.Fatalf("%s: carried is %v, %v; want %v, %v", about, gotC, gotP, consumers, producers)
	}
}

// carrying is a log of two segments, the newest open, in both of which consumers
// and producers moved; and what it carries.
func carrying(t testing.TB, fsys *powercut.FS) (consumers []segment.Consumer, producers []segment.Producer) {
	t.Helper()
	cfg := config(fsys)
	var l *wal.Log
	cfg.NextStart = func(s *segment.Start) error {
		s.Consumers, s.Producers = consumers, producers
		return nil
	}
	l, err := wal.Open(t.Context(), shardDir, cfg, nil)
	must(t, err)
	wantCarried(t, "an empty log", l, nil, nil)
	begin(t, l)
	consume(t, l, segment.KindConsumerCreate, "slow", 0)
	consume(t, l, segment.KindConsumerCreate, "gone", 0)
	first := putAs(t, l, "p1", 1, "a", "b")
	second := putAs(t, l, "p2", 7, "c")
	consume(t, l, segment.KindAck, "slow", 2)
	consume(t, l, segment.KindConsumerRemove, "gone", 0)
	consumers, producers = []segment.Consumer{{Name: "slow", Cursor: 2}}, []segment.Producer{first, second}
	wantCarried(t, "one segment", l, consumers, producers)
	mustSeal(t, l)
	wantCarried(t, "sealed", l, consumers, producers)
	again := putAs(t, l, "p1", 2, "d")
	consume(t, l, segment.KindConsumerCreate, "early", 4)
	mustPut(t, l, "no producer's")
	consumers = []segment.Consumer{{Name: "early", Cursor: 4}, {Name: "slow", Cursor: 2}}
	producers = []segment.Producer{second, again}
	wantCarried(t, "two segments", l, consumers, producers)
	mustClose(t, l)
	return consumers, producers
}

func TestCarriedSurvivesEveryWayOfOpening(t *testing.T) {
	base := powercut.New()
	consumers, producers := carrying(t, base)
	read := func(fsys *powercut.FS) *int64 {
		n := new(int64)
		fsys.Inject(func(op powercut.Op) error {
			if op.Kind == powercut.KindRead && op.Path == segFile(2) && op.Off > segment.HeaderBytes {
				*n += op.Len
			}
			return nil
		})
		return n
	}
	for about, how := range map[string]struct {
		sink  wal.Sink
		index bool
	}{
		"replay":                  {(&recorder{}).take, true},
		"replay, no index":        {(&recorder{}).take, false},
		"no replay, index":        {nil, true},
		"no replay, and no index": {nil, false},
	} {
		fsys := base.Cut(0)
		mustWrite(t, fsys, shardDir+"/"+segment.IndexFile, mustRead(t, base, shardDir+"/"+segment.IndexFile))
		if !how.index {
			noIndex(t, fsys)
		}
		n := read(fsys)
		ro, err := wal.OpenReadOnly(t.Context(), shardDir, config(fsys), how.sink)
		must(t, err)
		wantCarried(t, about+", read-only", ro, consumers, producers)
		l, err := wal.Open(t.Context(), shardDir, config(fsys), how.sink)
		must(t, err)
		wantCarried(t, about, l, consumers, producers)
		mustClose(t, l)
		if trusted := how.sink == nil && how.index; trusted && *n > 100 {
			t.Errorf("%s: %d bytes of the newest segment's frames were read", about, *n)
		}
	}
}

// The newest segment is sealed and nothing was opened after it, or only half.
func TestCarriedAtASealedEnd(t *testing.T) {
	fsys := powercut.New()
	consumers, producers := carrying(t, fsys)
	l, _ := open(t, fsys)
	mustSeal(t, l)
	mustClose(t, l)
	headless := fsys.Cut(0)
	mustWrite(t, headless, segFile(3), []byte("OW"))
	for about, fsys := range map[string]*powercut.FS{"sealed": fsys.Cut(0), "headless behind": headless} {
		for _, sink := range []wal.Sink{nil, (&recorder{}).take} {
			l, err := wal.Open(t.Context(), shardDir, config(fsys), sink)
			must(t, err)
			wantCarried(t, about, l, consumers, producers)
			mustClose(t, l)
		}
	}
}

// What is queued or was refused is not carried: a retry must find all or none.
func TestCarriedCountsOnlyWhatIsDurable(t *testing.T) {
	fsys := powercut.New()
	mustClose(t, fresh(t, fsys))
	slow := &slowSync{FS: fsys, entered: make(chan struct{}), gate: make(chan struct{})}
	l, err := wal.Open(t.Context(), shardDir, config(slow), nil)
	must(t, err)
	p1 := putAs(t, l, "p1", 1, "a")
	slow.on.Store(true)
	b := batch("b")
	b.Producer, b.Sequence = "p1", 2
	ticket, err := l.AppendBatch(t.Context(), b)
	must(t, err)
	<-slow.entered
	wantCarried(t, "within the fdatasync", l, nil, []segment.Producer{p1})
	close(slow.gate)
	_, err = ticket.Wait(t.Context())
	must(t, err)
	p2 := segment.Producer{ID: "p1", Sequence: 2, First: 2, Last: 2}
	wantCarried(t, "after it", l, nil, []segment.Producer{p2})
	fsys.FailNth(powercut.KindWrite, 1, syscall.ENOSPC)
	b.Sequence = 3
	ticket, err = l.AppendBatch(t.Context(), b)
	must(t, err)
	if _, err := ticket.Wait(t.Context()); err == nil {
		t.Fatal("a write that failed was acknowledged")
	}
	wantCarried(t, "after a refused write", l, nil, []segment.Producer{p2})
	mustClose(t, l)
	x, err := segment.DecodeIndex(mustRead(t, fsys, shardDir+"/"+segment.IndexFile))
	must(t, err)
	if !slices.Equal(x.Producers, []segment.Producer{p2}) {
		t.Fatalf("index.json has producers %v", x.Producers)
	}
}

// Whoever waited for a seal, or for a row of its run, finds that OnSealed was
// told before.
func TestOnSealedComesBeforeItsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(powercut.New())
		cfg.SegmentAge = 24 * time.Hour
		var told []segment.ID // by the committer, read only after it woke this goroutine
		cfg.OnSealed = func(s wal.SealedSegment) {
			time.Sleep(time.Minute)
			told = append(told, s.ID)
		}
		l, err := wal.Open(t.Context(), shardDir, cfg, nil)
		must(t, err)
		begin(t, l)
		mustPut(t, l, "a")
		mustSeal(t, l)
		if !slices.Equal(told, []segment.ID{1}) {
			t.Fatalf("Seal returned when OnSealed had been told of %v", told)
		}
		// A row and the Seal behind it in one run.
		big := strings.Repeat("x", 9<<20)
		row, err := l.AppendBatch(t.Context(), batch(big))
		must(t, err)
		next, err := l.AppendBatch(t.Context(), batch(big))
		must(t, err)
		_, err = row.Wait(t.Context())
		must(t, err)
		_, err = next.Wait(t.Context())
		must(t, err)
		if !slices.Equal(told, []segment.ID{1, 2}) {
			t.Fatalf("a row behind a Seal is durable, OnSealed was told of %v", told)
		}
		mustClose(t, l)
	})
}
