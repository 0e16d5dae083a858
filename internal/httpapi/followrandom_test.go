package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/segment"
)

// follower of a test, which resumes by token however it ends.
type client struct {
	base   func() string
	path   string
	events bool
	cut    func() bool // whether to cut the connection after this row

	mu   sync.Mutex
	got  []string // payloads
	last string
}

func (c *client) run(ctx context.Context) error {
	for {
		q := url.Values{}
		if c.last != "" {
			q.Set("after", c.last)
		}
		f, p, err := followed(ctx, c.base(), c.path, q, c.events)
		switch {
		case err != nil:
			return err // the end of ctx, too
		case p != nil:
			return fmt.Errorf("%s after %q: %+v", c.path, c.last, *p)
		}
		err = c.take(f)
		_ = f.body.Close()
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case ctx.Err() != nil: // which may end between the last row and a cut of our own
			return ctx.Err()
		}
	}
}

func (c *client) take(f *following) error {
	for {
		l, p, err := f.next()
		if err != nil {
			return err
		}
		if p != nil {
			return fmt.Errorf("%s after %q: %+v", c.path, c.last, *p)
		}
		c.mu.Lock()
		c.got, c.last = append(c.got, *l.Payload), l.Token
		c.mu.Unlock()
		if c.cut() {
			return io.EOF
		}
	}
}

func (c *client) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// TestFollowerEnds: a follower whose context ends while it cuts its connection ended as it
// was told to, and not by the cut.
func TestFollowerEnds(t *testing.T) {
	s := newSite(t, 1)
	s.append("a", "a 1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &client{path: "/v1/streams/a/rows", base: func() string { return s.owner.URL }, cut: func() bool { cancel(); return true }}
	if err := c.run(ctx); !errors.Is(err, context.Canceled) || len(c.got) != 1 {
		t.Errorf("%d rows, then: %v", len(c.got), err)
	}
}

// TestFollowRandom: whatever becomes of the rows behind and before them, followers at an
// owner and at a reader, by NDJSON and by events, of streams and through cut connections, see each
// row once and in order: across seal, publish, settle, slots deleted, trims of what is
// behind, takeovers of published chains, and a change of the shard count.
func TestFollowRandom(t *testing.T) {
	var all befell
	for seed := range uint64(followSeeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			followRandom(t, rand.New(rand.NewPCG(seed, 1)), 60, &all)
		})
	}
	if all.trims == 0 || all.takeovers == 0 || all.epochs == 0 || all.settled == 0 || all.deleted == 0 {
		t.Errorf("not all of it happened: %+v", all)
	}
}

// followSeeds are a few seconds' worth.
const followSeeds = 3

// befell counts what the followers were to live through.
type befell struct{ trims, takeovers, epochs, settled, deleted int }

func (b *befell) count(t *testing.T, s *site) {
	b.takeovers += s.dirs - 1
	b.epochs += int(s.topo.Epoch) - 1
	rows, err := s.cat.Chains(t.Context())
	s.must(err)
	for i := range rows {
		b.settled += int(max(rows[i].Rewritten, 1)) - 1
		b.deleted += int(max(rows[i].Trimmed, 1)) - 1
	}
}

// slotsGo waits until slots that were settled are deleted.
func (s *site) slotsGo() {
	s.t.Helper()
	for bound := time.Now().Add(2 * time.Minute); time.Now().Before(bound); time.Sleep(10 * time.Millisecond) {
		rows, err := s.cat.Chains(s.t.Context())
		s.must(err)
		for i := range rows {
			if rows[i].Trimmed > 1 {
				return
			}
		}
	}
	s.t.Fatal("no slot was deleted in two minutes")
}

func followRandom(t *testing.T, rng *rand.Rand, steps int, all *befell) {
	s := newSite(t, 2)
	defer s.audit()()
	streams := []string{"a", "b", "c"}
	want := map[string][]string{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients []*client
	done := make(chan error, 64)
	begin := func(stream string, events, reader bool, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := &client{path: "/v1/streams/" + stream + "/rows", events: events, cut: func() bool { return r.IntN(40) == 0 }}
		c.base = func() string {
			if reader {
				return s.other.URL
			}
			return s.owner.URL
		}
		clients = append(clients, c)
		go func() { done <- c.run(ctx) }()
	}
	for i, stream := range streams { // none of them exists yet
		begin(stream, i == 0, false, rng.Uint64())
		begin(stream, i != 0, true, rng.Uint64())
	}
	n := 0
	write := func(stream string) {
		batch := make([]string, 1+rng.IntN(5))
		for i := range batch {
			n++
			batch[i] = fmt.Sprintf("%s %d", stream, n)
		}
		s.append(stream, batch...)
		want[stream] = append(want[stream], batch...)
	}
	behind := func() int { // rows of c that all its followers have
		least := len(want["c"])
		for _, c := range clients {
			if strings.Contains(c.path, "/c/") {
				least = min(least, len(c.seen()))
			}
		}
		return least
	}
	trims := 0
	for step := range steps {
		if step == steps/2 {
			s.flush()
			s.slotsGo()
		}
		switch k := rng.IntN(100); {
		case k < 60:
			write(streams[rng.IntN(len(streams))])
		case k < 75:
			s.flush()
		case k < 85:
			s.flush()
			for bound := time.Now().Add(2 * time.Minute); len(want["c"]) > 0 && behind() == 0 && time.Now().Before(bound); {
				time.Sleep(time.Millisecond) // they are behind on a loaded machine
			}
			if b := behind(); b > 0 {
				if st, err := s.cat.Catalog.Stream(ctx, "c"); err == nil {
					rows := allRows(t, s, "c")
					keep := want["c"][b-1]
					for i := range rows {
						if string(rows[i].Payload) == keep && st.LiveFrom.Less(rows[i].Pos()) {
							_, err := s.cat.TrimStream(ctx, "c", rows[i].Pos())
							s.must(err)
							trims++
						}
					}
				}
			}
		case k < 90:
			s.takeover(true)
		case k < 93 && s.topo.Epoch < 3:
			s.reshard(uint32(1 + rng.IntN(4)))
		default:
			time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond) // the auditor works meanwhile
		}
	}
	for _, stream := range streams {
		write(stream)
	}
	s.flush()
	deadline := time.Now().Add(2 * time.Minute) // no measure: for a machine that does much else
	for _, c := range clients {
		rows := want[strings.Split(c.path, "/")[3]]
		for len(c.seen()) < len(rows) && time.Now().Before(deadline) {
			select {
			case err := <-done:
				t.Fatalf("a follower ended: %v", err)
			case <-time.After(5 * time.Millisecond):
			}
		}
		if got := c.seen(); !slices.Equal(got, rows) {
			t.Errorf("%s (events %v): %d rows, want %d: first difference at %d", c.path, c.events, len(got), len(rows), difference(got, rows))
		}
	}
	cancel()
	for range clients {
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	all.trims += trims
	all.count(t, s)
	t.Logf("%d rows, %d trims, %d takeovers, epoch %d, %d verbs asked by followers of the bucket", n, trims, s.dirs-1, s.topo.Epoch, s.plain.tips.asked.Load())
}

func difference(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func allRows(t *testing.T, s *site, stream string) (out []coldload.Row) {
	for row, err := range s.reader.Rows(t.Context(), stream, segment.Pos{}, segment.Pos{}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, coldload.Row{Epoch: row.Epoch, Row: row.Clone()})
	}
	return out
}
