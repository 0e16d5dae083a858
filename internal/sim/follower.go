package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"time"

	"github.com/strandline/strandline/catalog/memory"
	"github.com/strandline/strandline/internal/httpapi"
	"github.com/strandline/strandline/segment"
)

// followPoll is how often a follower's server looks at the catalog: no multiple of it is a
// heartbeat's time, for two timers that end in one moment would be the Go scheduler's to order.
const followPoll = 2300*time.Millisecond + 7

// client of a reader's server, that follows a stream with pauses: it outlives the server.
type following struct {
	stream string
	rng    *rand.Rand
	next   segment.Pos // behind the last row that it was given; zero: none yet
	token  string      // of that row
	from   string      // or where it was told to go on
}

// line is one of an answer: a row, or why it goes on no more.
type line struct {
	httpapi.Line
	Error *said `json:"error"`
}

// said is a problem's part that counts.
type said struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	From   string `json:"from"` // where to go on
}

// row is the line's, as it was appended.
func (l *line) row() got {
	r := segment.Row{Seq: l.Seq, Time: l.Time.UnixNano(), Txn: []byte(l.Txn), Payload: l.Base64}
	if l.Payload != nil {
		r.Payload = []byte(*l.Payload)
	}
	return got{segment.Pos{Epoch: l.Epoch, Seq: l.Seq}, segment.RowSum(r)}
}

// server is the process's interface to readers.
func (p *process) server() (http.Handler, error) {
	r, err := p.newReader(3)
	if err != nil {
		return nil, err
	}
	return httpapi.Handler(httpapi.Deps{
		Reader: r, Catalog: p.catalog, Epoch: 1, Shards: p.sim.cfg.Shards, Logger: p.log(), FollowPoll: followPoll,
	}), nil
}

// runFollower serves a client that takes a few rows, stays away for a while, and comes back
// with the token of the last.
func (p *process) runFollower() {
	h, err := p.server()
	if err != nil {
		p.sim.check.violated("start", "%s: %v", p.name, err)
		return
	}
	f := p.sim.follower(p.name)
	for p.pause(p.ctx, time.Second+time.Duration(f.rng.Int64N(int64(25*time.Second)))) {
		p.followed(h, f, 1+f.rng.IntN(6), 2*time.Second+time.Duration(f.rng.Int64N(int64(15*time.Second))))
	}
}

// follower is the client of a role.
func (s *Sim) follower(name string) *following {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.followers[name]
	if f == nil {
		n, _ := strconv.ParseUint(name[1:], 10, 64) // f1, f2 …
		f = &following{rng: rand.New(rand.NewPCG(s.cfg.Seed, 1<<32+n))}
		f.stream = streamNames[f.rng.IntN(len(streamNames))]
		s.followers[name] = f
	}
	return f
}

// followed is one request: so many rows at most, for so long at most.
func (p *process) followed(h http.Handler, f *following, limit int, d time.Duration) {
	p.reading = time.Now()
	ctx, cancel := context.WithTimeout(p.ctx, d)
	defer cancel()
	q := url.Values{"follow": {"true"}, "limit": {strconv.Itoa(limit)}}
	switch {
	case f.token != "":
		q.Set("after", f.token)
	case f.from != "":
		q.Set("from", f.from)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/streams/"+url.PathEscape(f.stream)+"/rows?"+q.Encode(), http.NoBody)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if !p.alive() {
		return // what it sent last may have come, or not
	}
	lines, end, err := linesOf(w)
	if err != nil {
		p.sim.check.violated("I7", "%s followed %q: %v", p.name, f.stream, err)
		return
	}
	p.hit("follow " + end.Code)
	p.sim.check.followed(p, f, lines, end)
}

// linesOf reads an answer; one that ends in no error is "fine".
func linesOf(w *httptest.ResponseRecorder) (lines []line, end said, err error) {
	end.Code = "fine"
	if w.Code != http.StatusOK {
		return nil, end, json.Unmarshal(w.Body.Bytes(), &end)
	}
	for d := json.NewDecoder(bytes.NewReader(w.Body.Bytes())); ; {
		var l line
		switch err := d.Decode(&l); {
		case errors.Is(err, io.EOF):
			return lines, end, nil
		case err != nil:
			return lines, end, fmt.Errorf("a body of %d bytes: %w", w.Body.Len(), err)
		case l.Error != nil:
			return lines, *l.Error, nil
		}
		lines = append(lines, l)
	}
}

// followed is I7 for one who follows: from the row that it had, every row of the history comes
// in its order, or it is told that one was given up.
func (k *checker) followed(p *process, f *following, lines []line, end said) {
	k.sim.applying.Lock()
	defer k.sim.applying.Unlock()
	if b := &k.sim.back; b.since(p) || b.happened() && (end.Code == "forked" || end.Code == "invalid-request") {
		f.next, f.token, f.from = segment.Pos{}, "", "" // its rows are history no more, or will be again
		return
	}
	rows := make([]got, len(lines))
	for i := range lines {
		rows[i] = lines[i].row()
	}
	k.sim.cat.View(func(v memory.View) {
		if _, ok := k.given(v, p, f.stream, f.next, rows); !ok {
			return
		}
		if n := len(rows); n > 0 {
			f.next, f.token = rows[n-1].at.Next(), lines[n-1].Token
		}
		over := k.overtaken(v, f.stream, f.next)
		switch end.Code {
		case "fine", "catalog-unavailable", "store-unavailable", "timeout", "cancelled":
		case "trimmed", "deleted":
			if !over {
				k.violated("I7", "%s followed %q to %s, of which nothing was given up that it had yet to be given: %s", p.name, f.stream, f.next, end.Detail)
			}
			f.next, f.token, f.from = segment.Pos{}, "", "" // it begins anew at the first that is left
		case "lost":
			k.followedToLoss(v, p, f, end)
		default:
			k.violated("I7", "%s followed %q to %s: %s: %s", p.name, f.stream, f.next, end.Code, end.Detail)
		}
	})
}

// followedToLoss: a follower is told of what was lost, and, once that was accepted, where to
// go on.
func (k *checker) followedToLoss(v memory.View, p *process, f *following, end said) {
	if !k.atLoss(v, f.stream, f.next) && !k.sim.back.noticed() {
		k.violated("I7", "%s followed %q to %s, where nothing was lost: %s", p.name, f.stream, f.next, end.Detail)
	}
	if end.From == "" {
		return
	}
	var first segment.Pos
	if _, err := fmt.Sscanf(end.From, "%d.%d", &first.Epoch, &first.Seq); err != nil {
		k.violated("I7", "%s followed %q, and is to go on from %q", p.name, f.stream, end.From)
		return
	}
	k.jump(v, p, f.stream, f.next, first)
	f.next, f.token, f.from = first, "", end.From
}

// given holds rows that came from a position on against the history: which they are, their
// order, and what was left out. It says behind which of the stream's rows they end.
func (k *checker) given(v memory.View, p *process, stream string, from segment.Pos, rows []got) (next int, ok bool) {
	t := k.model.stream(stream)
	next = t.find(from)
	at := from
	for _, r := range rows {
		i := t.find(r.at)
		if i == len(t.at) || t.at[i] != r.at || t.total[i+1]-t.total[i] != r.sum {
			k.violated("I7", "%s read %q from %s and got a row at %s that the history does not have", p.name, stream, from, r.at)
			return next, false
		}
		if i < next {
			k.violated("I7", "%s read %q from %s and got %s after a later row, or twice", p.name, stream, from, r.at)
			return next, false
		}
		k.skipped(v, p, stream, next, i)
		k.passedOver(v, p, stream, at, next, i)
		next, at = i+1, r.at.Next()
	}
	return next, true
}

// passedOver: who stands at a position is told of what was given up behind it; it does not
// go on behind the cut as if nothing had been there. Only what a newer epoch's chain gave
// up by its watermark is as silent to one that comes from an older epoch as it is to one that
// begins there (catalog.Plan.Linked).
func (k *checker) passedOver(v memory.View, p *process, stream string, at segment.Pos, from, to int) {
	if at == (segment.Pos{}) {
		return // the first live row, whichever that is
	}
	t := k.model.stream(stream)
	for i := from; i < to; i++ {
		if t.at[i].Epoch > at.Epoch && !k.isLive(v, stream, t.chain[i], t.at[i]) {
			continue
		}
		k.violated("I7", "%s stood at %s of %q and was given %s next, without a word of the row at %s", p.name, at, stream, t.at[to], t.at[i])
		return
	}
}

// catchUp has every follower come to the end of its stream.
func (s *Sim) catchUp() error {
	p, err := s.endProcess(nil)
	if err != nil {
		return err
	}
	defer p.end()
	h, err := p.server()
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(s.followers) {
		f := s.followers[name]
		for range 4 { // more than one: it was told of a trim, or of losses
			p.followed(h, f, len(s.model.stream(f.stream).at)+1, 4*followPoll)
		}
		if t := s.model.stream(f.stream); len(t.at) > 0 {
			s.check.behind(p, f, t.find(f.next), len(t.at))
		}
	}
	return nil
}

// behind: at the end nothing live is left that a follower was not given.
func (k *checker) behind(p *process, f *following, from, to int) {
	k.sim.applying.Lock()
	defer k.sim.applying.Unlock()
	k.sim.cat.View(func(v memory.View) { k.skipped(v, p, f.stream, from, to) })
}
