package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

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
			// A scanner gives what came of a line before the reading of it failed.
			return l, nil, fmt.Errorf("line %q: %w", text, errors.Join(err, f.lines.Err()))
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
	for name, base := range map[string]string{"owner": s.owner.URL, "reader": s.other.URL} {
		first := s.append(name, "a1", "a2")
		s.append("b", "b1")
		last := s.append(name, "a3").Last
		s.flush()
		trim := func(seq segment.Seq) {
			_, err := s.cat.TrimStream(t.Context(), name, segment.Pos{Epoch: 1, Seq: seq})
			s.must(err)
		}
		rows := "/v1/streams/" + name + "/rows"
		f := mustFollow(t, base, rows, url.Values{"after": {fmt.Sprint(first.Last)}})
		mustNext(t, f, "a3")
		trim(last + 1) // through the tip
		res := s.append(name, "a4")
		s.flush()
		mustNext(t, f, "a4")
		s.append(name, "one more")
		s.flush()
		trim(res.Last + 1)
		// It lies behind a row that a client at res.Last has not got, and the rows up to there are gone.
		_, p, err := followed(t.Context(), base, rows, url.Values{"from": {fmt.Sprint(first.First)}}, false)
		if err != nil || p == nil || p.Code != "trimmed" || p.First == nil || *p.First != res.Last+1 {
			t.Errorf("%s: from its first row: %+v, %v", name, p, err)
		}
		f = mustFollow(t, s.other.URL, rows, url.Values{"after": {fmt.Sprint(res.Last)}})
		mustNext(t, f, "one more")
	}
}

// TestFollowDeleted: a follower of what is live in a deleted stream waits for rows that come
// again; a read of it says that it is deleted, and one from below says where to go on.
func TestFollowDeleted(t *testing.T) {
	s := newSite(t, 1)
	for name, base := range map[string]string{"owner": s.owner.URL, "reader": s.other.URL} {
		res := s.append(name, "a1", "a2")
		s.flush()
		_, err := s.cat.DeleteStream(t.Context(), name)
		s.must(err)
		rows := "/v1/streams/" + name + "/rows"
		for query, code := range map[string]string{"": "deleted", "?from=" + fmt.Sprint(res.First): "deleted", "?from=" + fmt.Sprint(res.Last+1): ""} {
			w, p := ask(t, s, name == "owner", "GET", rows+query, "")
			if p.Code != code || code != "" && (w.Code != 410 || p.First == nil || *p.First != res.Last+1 || p.From != fmt.Sprintf("1.%d", res.Last+1)) {
				t.Errorf("%s%s: %d %+v", name, query, w.Code, p)
			}
		}
		_, p, err := followed(t.Context(), base, rows, url.Values{"from": {fmt.Sprint(res.First)}}, false)
		if err != nil || p == nil || p.Code != "deleted" {
			t.Errorf("%s: a follow from a row that is gone: %+v %v", name, p, err)
		}
		f := mustFollow(t, base, rows, nil)
		s.append(name, "again")
		s.flush()
		mustNext(t, f, "again")
		if w, p := ask(t, s, name == "owner", "GET", rows, ""); w.Code != 200 {
			t.Errorf("%s: made again: %+v", name, p)
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
	// What a follower does before it waits may last: a stretch counts that had looks alone.
	rest := func() int64 {
		return s.cat.plans.Load() + s.cat.chains.Load() + s.stores[0].Counters().Requests[objstore.OpList]
	}
	for bound := time.Now().Add(time.Minute); ; {
		began, streams, others := time.Now(), s.cat.streams.Load(), rest()
		for s.cat.streams.Load()-streams < 25 && time.Now().Before(bound) {
			time.Sleep(sitePoll)
		}
		n := s.cat.streams.Load() - streams
		// Its ends cut a turn each, and a look may have been under way at its begin.
		if turns := int64(time.Since(began)/sitePoll) + 3; n > turns {
			t.Fatalf("%d looks of five followers in %d turns, want one a turn", n, turns)
		}
		cost := rest() - others
		if n >= 25 && cost == 0 {
			return
		}
		if !time.Now().Before(bound) {
			t.Fatalf("%d looks of five followers, which cost %d plans, chain rows and LISTs", n, cost)
		}
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
	var took time.Duration // from each append's return: an fsync takes what it takes
	for i := range 20 {
		row := fmt.Sprint("row ", i)
		s.append("a", row)
		began := time.Now()
		mustNext(t, f, row)
		took += time.Since(began)
	}
	if took > 10*time.Second { // whom the log does not wake looks once a second
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
