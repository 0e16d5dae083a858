package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/coldload"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/segment"
)

// following is one request that follows.
type following struct {
	body   io.ReadCloser
	lines  *bufio.Scanner
	events bool
	header http.Header
	beats  int
}

// followed begins one; a problem instead of an answer is returned.
func followed(ctx context.Context, base, path string, q url.Values, events bool) (*following, *problem, error) {
	q = cloneQuery(q)
	q.Set("follow", "true")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path+"?"+q.Encode(), nil)
	if err != nil {
		return nil, nil, err
	}
	if events {
		req.Header.Set("Accept", eventsType)
		if after := q.Get("after"); after != "" {
			// As a browser does: the address stays what it was.
			q.Del("after")
			req.URL.RawQuery = q.Encode()
			req.Header.Set(lastEventHeader, after)
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	if res.StatusCode != http.StatusOK {
		var p problem
		err := errors.Join(json.NewDecoder(res.Body).Decode(&p), res.Body.Close())
		return nil, &p, err
	}
	f := &following{body: res.Body, lines: bufio.NewScanner(res.Body), events: events, header: res.Header}
	f.lines.Buffer(nil, 1<<20)
	return f, nil, nil
}

func cloneQuery(q url.Values) url.Values {
	out := url.Values{}
	for k, v := range q {
		out[k] = slices.Clone(v)
	}
	return out
}

// next is the next row, or the problem that ends the answer. io.EOF: it was cut.
func (f *following) next() (l Line, p *problem, err error) {
	id := ""
	for f.lines.Scan() {
		text := f.lines.Text()
		if f.events {
			if strings.HasPrefix(text, ":") {
				f.beats++
			}
			if v, ok := strings.CutPrefix(text, "id: "); ok {
				id = v
			}
			data, ok := strings.CutPrefix(text, "data: ")
			if !ok {
				continue
			}
			text = data
		}
		if text == "" {
			f.beats++
			continue
		}
		var line struct {
			Line
			Error *problem `json:"error"`
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			return l, nil, fmt.Errorf("line %q: %w", text, err)
		}
		if f.events && line.Error == nil && id != line.Token {
			return l, nil, fmt.Errorf("event %q has id %q", text, id)
		}
		return line.Line, line.Error, nil
	}
	if err := f.lines.Err(); err != nil {
		return l, nil, err
	}
	return l, nil, io.EOF
}

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
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case p != nil:
			return fmt.Errorf("%s after %q: %+v", c.path, c.last, *p)
		}
		err = c.take(f)
		_ = f.body.Close()
		if ctx.Err() != nil || err != nil && !errors.Is(err, io.EOF) {
			return err
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
			time.Sleep(5 * siteGrace / 2) // slots that were settled go
		}
		switch k := rng.IntN(100); {
		case k < 60:
			write(streams[rng.IntN(len(streams))])
		case k < 75:
			s.flush()
		case k < 85:
			s.flush()
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
	deadline := time.Now().Add(20 * time.Second)
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
		out = append(out, row)
	}
	return out
}

// mustNext is a follower's next row.
func mustNext(t *testing.T, f *following, want string) Line {
	t.Helper()
	l, p, err := f.next()
	if err != nil || p != nil || *l.Payload != want {
		t.Fatalf("want %q: %+v, %+v, %v", want, l, p, err)
	}
	return l
}

func mustFollow(t *testing.T, base, path string, q url.Values) *following {
	t.Helper()
	f, p, err := followed(t.Context(), base, path, q, false)
	if err != nil || p != nil {
		t.Fatalf("follow %s: %+v, %v", path, p, err)
	}
	t.Cleanup(func() { _ = f.body.Close() })
	return f
}

// TestFollowForked: rows that a follower saw and that a takeover left out of the history are
// told, at once and when it resumes; a follower that saw none of them loses nothing.
func TestFollowForked(t *testing.T) {
	s := newSite(t, 1)
	s.append("a", "a1")
	s.append("b", "b1")
	s.flush()
	a := mustFollow(t, s.owner.URL, "/v1/streams/a/rows", nil)
	b := mustFollow(t, s.owner.URL, "/v1/streams/b/rows", nil)
	mustNext(t, a, "a1")
	mustNext(t, b, "b1")
	s.append("a", "a2 lost", "a3 lost")
	last := mustNext(t, a, "a2 lost")
	s.takeover(false)
	s.append("b", "b2")
	s.append("a", "a2")
	s.flush()
	mustNext(t, a, "a3 lost")
	if _, p, err := a.next(); err != nil || p == nil || p.Code != "forked" || p.Forked == nil || *p.Forked != 3 {
		t.Errorf("a follower of what was lost: %+v, %v", p, err)
	}
	mustNext(t, b, "b2")
	for _, base := range []string{s.owner.URL, s.other.URL} {
		_, p, err := followed(t.Context(), base, "/v1/streams/a/rows", url.Values{"after": {last.Token}}, true)
		if err != nil || p == nil || p.Code != "forked" || p.Status != http.StatusConflict {
			t.Errorf("resumed after what was lost: %+v, %v", p, err)
		}
	}
}

// TestFollowTrimmed: what a follower still needs and was given up is told; what it had is
// not its loss.
func TestFollowTrimmed(t *testing.T) {
	s := newSite(t, 1)
	s.append("a", "a1", "a2")
	s.append("b", "b1")
	s.append("a", "a3")
	s.flush()
	trim := func(seq segment.Seq) {
		_, err := s.cat.TrimStream(t.Context(), "a", segment.Pos{Epoch: 1, Seq: seq})
		s.must(err)
	}
	for name, base := range map[string]string{"owner": s.owner.URL, "reader": s.other.URL} {
		f := mustFollow(t, base, "/v1/streams/a/rows", url.Values{"after": {"2"}})
		mustNext(t, f, "a3")
		trim(5) // through the tip
		next := "a4 for the " + name
		res := s.append("a", next)
		s.flush()
		mustNext(t, f, next)
		if name == "owner" {
			s.append("a", "one more")
			s.flush()
			trim(res.Last + 1)
			// It lies behind a row that a client at res.Last has not got, and rows 1 to 4 are gone.
			_, p, err := followed(t.Context(), base, "/v1/streams/a/rows", url.Values{"from": {"1"}}, false)
			if err != nil || p == nil || p.Code != "trimmed" || p.First == nil || *p.First != res.Last+1 {
				t.Errorf("%s: from 1: %+v, %v", name, p, err)
			}
			f := mustFollow(t, s.other.URL, "/v1/streams/a/rows", url.Values{"after": {fmt.Sprint(res.Last)}})
			mustNext(t, f, "one more")
			break
		}
	}
}

// TestFollowPolls: a process without a writer asks one verb for each look at a stream, however
// many follow it, and an owner's followers ask nothing while nothing happens.
func TestFollowPolls(t *testing.T) {
	s := newSite(t, 1)
	s.append("a", "a1")
	s.flush()
	for range 5 {
		mustNext(t, mustFollow(t, s.other.URL, "/v1/streams/a/rows", nil), "a1")
	}
	settle := func() { time.Sleep(3 * sitePoll) }
	settle()
	streams, plans, chains, lists := s.cat.streams.Load(), s.cat.plans.Load(), s.cat.chains.Load(), s.stores[0].Counters().Requests[objstore.OpList]
	began := time.Now()
	time.Sleep(25 * sitePoll)
	looks := int64(time.Since(began)/sitePoll) + 1
	if n := s.cat.streams.Load() - streams; n < looks/2 || n > looks+1 {
		t.Errorf("%d looks of five followers in %d turns, want one a turn", n, looks)
	}
	if p, c, l := s.cat.plans.Load()-plans, s.cat.chains.Load()-chains, s.stores[0].Counters().Requests[objstore.OpList]-lists; p+c+l != 0 {
		t.Errorf("waiting cost %d plans, %d chain rows, %d LIST", p, c, l)
	}
}

// TestFollowOwnerAsksNothing: the owner of the tail waits for the log.
func TestFollowOwnerAsksNothing(t *testing.T) {
	s := newSite(t, 1)
	s.append("a", "a1")
	f := mustFollow(t, s.owner.URL, "/v1/streams/a/rows", nil)
	mustNext(t, f, "a1")
	s.append("a", "a2")
	mustNext(t, f, "a2")
	streams, plans := s.cat.streams.Load(), s.cat.plans.Load()
	began := time.Now()
	for i := range 20 {
		row := fmt.Sprint("row ", i)
		s.append("a", row)
		mustNext(t, f, row)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("20 rows took %v", took)
	}
	if n, p := s.cat.streams.Load()-streams, s.cat.plans.Load()-plans; n+p != 0 {
		t.Errorf("%d looks at the stream, %d plans, want none", n, p)
	}
	if f.header.Get(servedByHeader) != byOwner {
		t.Errorf("served by %q", f.header.Get(servedByHeader))
	}
	other := mustFollow(t, s.other.URL, "/v1/streams/a/rows", nil)
	if other.header.Get(ownerHeader) != s.owner.URL || other.header.Get(servedByHeader) != byColdLoad {
		t.Errorf("a reader says %v", other.header)
	}
}

// TestFollowShard: all streams of a shard, in its order, to the end of its epoch.
func TestFollowShard(t *testing.T) {
	s := newSite(t, 1)
	var all []string
	for i := range 30 {
		all = append(all, fmt.Sprint("row ", i))
	}
	feed := func(rows []string) {
		for i, row := range rows {
			s.append(string(rune('a'+i%3)), row)
		}
	}
	feed(all[:10])
	s.flush()
	feed(all[10:15])
	fs := []*following{
		mustFollow(t, s.owner.URL, "/v1/shards/0/rows", nil),
		mustFollow(t, s.other.URL, "/v1/shards/0/rows", nil),
		mustFollow(t, s.owner.URL, "/v1/shards/0/rows", url.Values{"from": {"1"}, "epoch": {"1"}}),
	}
	feed(all[15:])
	s.takeover(true)
	s.reshard(2)
	for i, f := range fs {
		for _, row := range all {
			mustNext(t, f, row)
		}
		if _, p, err := f.next(); err != nil || p == nil || p.Code != "chain-ended" {
			t.Errorf("follower %d: %+v, %v", i, p, err)
		}
	}
	if _, p, err := followed(t.Context(), s.other.URL, "/v1/shards/9/rows", nil, false); err != nil || p == nil || p.Status != http.StatusNotFound {
		t.Errorf("a shard that is none: %+v, %v", p, err)
	}
}

// TestFollowStops: when the process stops, followers are told so and can go on elsewhere; a
// client that goes away leaves nothing behind (goleak looks at the end).
func TestFollowStops(t *testing.T) {
	s := newSite(t, 1)
	s.append("a", "a1")
	s.flush()
	gone := mustFollow(t, s.owner.URL, "/v1/streams/a/rows", nil)
	mustNext(t, gone, "a1")
	_ = gone.body.Close()
	var fs []*following
	for _, events := range []bool{true, false} {
		f, p, err := followed(t.Context(), s.owner.URL, "/v1/streams/a/rows", nil, events)
		if err != nil || p != nil {
			t.Fatal(p, err)
		}
		mustNext(t, f, "a1")
		fs = append(fs, f)
	}
	close(s.stop)
	for _, f := range fs {
		if _, p, err := f.next(); err != nil || p == nil || p.Code != "closing" || p.RequestID != f.header.Get(requestHeader) {
			t.Errorf("%+v, %v", p, err)
		}
		if _, _, err := f.next(); !errors.Is(err, io.EOF) {
			t.Errorf("it goes on: %v", err)
		}
	}
	if rec, p := do(t, s.plain.handler(), "GET", "/readyz", "", nil); rec.Code != 503 || p.Code != "not-ready" {
		t.Errorf("a process that stops is ready: %d", rec.Code)
	}
}

// TestFollowPlaces: followers take places of their own.
func TestFollowPlaces(t *testing.T) {
	s := newSite(t, 1)
	s.append("a", "a1")
	s.flush()
	s.plain.places.follows = make(chan struct{}, 2)
	s.plain.places.unary = make(chan struct{}, 1)
	s.plain.places.reads = make(chan struct{}, 1)
	for range 2 {
		mustNext(t, mustFollow(t, s.other.URL, "/v1/streams/a/rows", nil), "a1")
	}
	_, p, err := followed(t.Context(), s.other.URL, "/v1/streams/a/rows", nil, false)
	if err != nil || p == nil || p.Code != "busy" {
		t.Errorf("a third: %+v, %v", p, err)
	}
	for _, path := range []string{"/v1/status", "/v1/streams/a/rows", "/v1/shards"} {
		res, err := http.Get(s.other.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if path != "/v1/status" && res.StatusCode != 200 {
			t.Errorf("%s: %d beside two followers", path, res.StatusCode)
		}
	}
}

// TestFollowBadRequests are refused before anything is followed.
func TestFollowBadRequests(t *testing.T) {
	h := handler(nil, &bucket{looks: [][]segment.Seq{nil}})
	for q, code := range map[string]string{
		"follow=yes": "invalid-request", "follow=true&to=4": "invalid-request", "follow=true&from=0": "invalid-request", "follow=true&follow=true": "invalid-request",
	} {
		if _, p := do(t, h, "GET", "/v1/streams/s/rows?"+q, "", nil); p.Code != code {
			t.Errorf("%s: %+v", q, p)
		}
	}
}
