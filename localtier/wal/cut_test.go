package wal_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/strandline/strandline/internal/powercut"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// history is what a client knows: what it tried at each seq, what was
// acknowledged, and what a replay showed, which must not go away again.
type history struct {
	mu    sync.Mutex
	tried map[segment.Seq]map[string]bool
	kept  map[segment.Seq]string
	count int
}

func (h *history) try(first segment.Seq, payloads []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, p := range payloads {
		seq := first + segment.Seq(i)
		if h.tried[seq] == nil {
			h.tried[seq] = map[string]bool{}
		}
		h.tried[seq][p] = true
	}
}

func (h *history) ack(first segment.Seq, payloads []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, p := range payloads {
		h.kept[first+segment.Seq(i)] = p
	}
}

// payloads of one to three rows; some are larger than a page, so that a group
// write spans several.
func (h *history) payloads(rng *rand.Rand) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for range 1 + rng.IntN(3) {
		h.count++
		pad := 0
		if rng.IntN(3) == 0 {
			pad = rng.IntN(12_000)
		}
		out = append(out, fmt.Sprintf("%d.%s", h.count, strings.Repeat("p", pad)))
	}
	return out
}

// work appends from several producers, seals at random, and ends at the first
// failure of each.
func (h *history) work(l *wal.Log, rng *rand.Rand) {
	var wg sync.WaitGroup
	for range 4 {
		own := rand.New(rand.NewPCG(rng.Uint64(), 1))
		wg.Go(func() {
			for range 40 {
				if h.step(l, own) != nil {
					return
				}
			}
		})
	}
	wg.Wait()
}

func (h *history) step(l *wal.Log, rng *rand.Rand) error {
	if rng.IntN(12) == 0 {
		_, err := l.Seal(context.Background())
		return err
	}
	p := h.payloads(rng)
	b := batch(p...)
	ticket, err := l.AppendBatch(context.Background(), b)
	if err != nil {
		return err
	}
	h.try(b.First, p)
	if _, err := ticket.Wait(context.Background()); err != nil {
		return err
	}
	h.ack(b.First, p)
	return nil
}

// check holds a replay against the history: gapless, everything acknowledged or
// shown before, nothing that was never tried there. From here on it is kept.
func (h *history) check(t *testing.T, r *recorder, about string) {
	t.Helper()
	for i, row := range r.rows {
		seq, p := segment.Seq(i+1), string(row.Payload)
		if row.Seq != seq {
			t.Fatalf("%s: row %d has seq %d", about, i, row.Seq)
		}
		if want, ok := h.kept[seq]; ok && want != p {
			t.Fatalf("%s: seq %d is %.20q, acknowledged was %.20q", about, seq, p, want)
		}
		if !h.tried[seq][p] {
			t.Fatalf("%s: seq %d is %.20q, which nobody appended there", about, seq, p)
		}
	}
	for seq := range h.kept {
		if int(seq) > len(r.rows) {
			t.Fatalf("%s: seq %d was acknowledged and is gone; %d rows survive", about, seq, len(r.rows))
		}
	}
	for i, row := range r.rows {
		h.kept[segment.Seq(i+1)] = string(row.Payload)
	}
}

// Power cuts at random moments, over and over on one directory: whatever pages
// of the unsynced rest reach the disk, every acknowledged row survives, in order,
// once, and what a replay has shown stays.
func TestPowerCutsAtRandomMoments(t *testing.T) {
	seeds := 250
	if testing.Short() {
		seeds = 40
	}
	for seed := range seeds {
		cutRun(t, uint64(seed))
	}
}

func cutRun(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	fsys := powercut.New()
	h := &history{tried: map[segment.Seq]map[string]bool{}, kept: map[segment.Seq]string{}}
	for boot := range 4 {
		about := fmt.Sprintf("seed %d boot %d", seed, boot)
		fsys.PowerOffAfter(-1)
		r := &recorder{}
		if rng.IntN(4) == 0 { // the power goes again while it recovers
			fsys.PowerOffAfter(rng.IntN(12))
		}
		l, err := wal.Open(t.Context(), shardDir, config(fsys), r.take)
		if err == nil {
			h.check(t, r, about)
			live(t, l, fsys, h, rng)
		} else if !strings.Contains(err.Error(), powercut.ErrPowerOff.Error()) {
			t.Fatalf("%s: %v", about, err)
		}
		fsys = fsys.Cut(rng.Uint64N(3) * (1 + rng.Uint64()>>1)) // a third of them: synced bytes only
	}
	r := &recorder{}
	l, err := wal.Open(t.Context(), shardDir, config(fsys), r.take)
	if err != nil {
		t.Fatalf("seed %d: last open: %v", seed, err)
	}
	h.check(t, r, fmt.Sprintf("seed %d at the end", seed))
	mustClose(t, l)
}

// live is one boot: work until the power goes, or a fault poisons the log.
func live(t *testing.T, l *wal.Log, fsys *powercut.FS, h *history, rng *rand.Rand) {
	t.Helper()
	if l.State().Segment == 0 {
		if err := l.StartSegment(t.Context(), segment.Start{Chain: testChain, ID: 1, Base: 1, Term: 1}); err != nil {
			stop(l)
			return
		}
	}
	switch rng.IntN(4) {
	case 0:
		fsys.FailNth(powercut.KindSync, 1+rng.IntN(30), syscall.EIO)
	case 1:
		fsys.SetFree(int64(rng.IntN(200_000)))
	default:
		fsys.PowerOffAfter(rng.IntN(150))
	}
	h.work(l, rng)
	stop(l)
}

// The pages of one group write land in any order and number: what survives is
// everything before it and a prefix of it.
func TestGroupWritePagesInAnyOrder(t *testing.T) {
	for seed := range uint64(300) {
		fsys := powercut.New()
		mustClose(t, fresh(t, fsys))
		slow := &slowSync{FS: fsys, entered: make(chan struct{}), gate: make(chan struct{})}
		l, err := wal.Open(t.Context(), shardDir, config(slow), nil)
		if err != nil {
			t.Fatal(err)
		}
		mustPut(t, l, "acked")
		slow.on.Store(true)
		all := []string{"acked"}
		send := func(p string) {
			all = append(all, p)
			if _, err := l.AppendBatch(t.Context(), batch(p)); err != nil {
				t.Fatal(err)
			}
		}
		send("blocker")
		<-slow.entered
		for i := range 12 {
			send(fmt.Sprintf("%d.%s", i, strings.Repeat("g", 3000)))
		}
		// The blocker's fdatasync returns, the group is written, its fdatasync is
		// entered: there the power goes.
		slow.gate <- struct{}{}
		<-slow.entered
		cut := fsys.Cut(seed)
		close(slow.gate)
		stop(l)
		l, r := open(t, cut)
		got := r.payloads()
		if len(got) < 2 || len(got) > len(all) || strings.Join(got, " ") != strings.Join(all[:len(got)], " ") {
			t.Fatalf("seed %d: replayed %s", seed, brief(got))
		}
		mustPut(t, l, "goes on")
		mustClose(t, l)
		l, r = open(t, cut.Cut(0))
		wantRows(t, r, append(got, "goes on")...)
		mustClose(t, l)
	}
}
