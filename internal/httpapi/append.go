package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/segment"
)

// Appended is the answer to an append.
type Appended struct {
	Stream string        `json:"stream"`
	Epoch  segment.Epoch `json:"epoch"`
	Shard  segment.Shard `json:"shard"`
	Term   segment.Term  `json:"term"`
	First  segment.Seq   `json:"first"`
	Last   segment.Seq   `json:"last"`
	Rows   int           `json:"rows"`
	// The positions with the term whose history they belong to: give one to a read's
	// from or after, and it says if the history went on without it.
	FirstToken string `json:"first_token"`
	LastToken  string `json:"last_token"`
}

// appending is what an append's request says beside its rows.
type appending struct {
	stream   string
	ack      localtier.Ack
	producer localtier.Producer
	key      string // Idempotency-Key; empty: none
}

func appendingOf(r *http.Request) (a appending, err error) {
	a.stream = r.PathValue("stream")
	if err := segment.CheckStream(a.stream); err != nil {
		return a, err
	}
	if err := mustBeRows(r.Header); err != nil {
		return a, err
	}
	q := r.URL.Query()
	a.ack = localtier.Ack(q.Get("ack"))
	if a.ack != localtier.AckDefault && a.ack != localtier.AckLocal && a.ack != localtier.AckShared {
		return a, fmt.Errorf("%w: ack=%s: give local or shared", errBadRequest, a.ack)
	}
	if a.producer, err = producerOf(q); err != nil {
		return a, err
	}
	a.key, err = idempotencyKey(r.Header)
	if err == nil && a.key != "" && a.producer != (localtier.Producer{}) {
		err = fmt.Errorf("%w: give %s or producer=, not both: they are two ways to say the same", errBadRequest, idempotencyHeader)
	}
	return a, err
}

// append takes one body as one append call: all of its rows get consecutive seqs
// and are durable when the answer comes, or none is acknowledged. Of one that is larger than a
// frame and refused, the first rows may be durable: the problem says how many.
func (s *server) append(w http.ResponseWriter, r *http.Request) {
	if s.Writer == nil {
		s.fail(w, r, s.taker(r.Context(), r.PathValue("stream")))
		return
	}
	res, rows, err := s.appended(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, http.StatusOK, Appended{
		Stream: r.PathValue("stream"), Epoch: res.Epoch, Shard: res.Shard, Term: res.Term,
		First: res.First, Last: res.Last, Rows: rows,
		FirstToken: res.Token(res.First).String(), LastToken: res.Token(res.Last).String(),
	})
}

func (s *server) appended(r *http.Request) (res localtier.Result, n int, err error) {
	a, err := appendingOf(r)
	if err != nil {
		return res, 0, err
	}
	body, held, done, err := s.body(r)
	if err != nil {
		return res, 0, err
	}
	// The writer keeps none of the rows' bytes after its return.
	defer done()
	rows, err := rowsOf(r.Header.Get("Content-Type"), body, held)
	if err != nil {
		return res, 0, err
	}
	if a.key != "" {
		a.producer = producerOfKey(a.stream, a.key, rows)
	}
	now := time.Now().UnixNano()
	for i := range rows {
		if rows[i].Time == noTime {
			rows[i].Time = now
		}
	}
	res, err = s.Writer.AppendAs(r.Context(), a.producer, a.stream, rows, a.ack)
	if a.key != "" {
		err = keyReused(err)
	}
	return res, len(rows), err
}

// producerOf reads ?producer=ID&sequence=N: a retry with the same number is answered
// with what the first attempt got.
func producerOf(q url.Values) (p localtier.Producer, err error) {
	if !q.Has("producer") && !q.Has("sequence") {
		return p, nil
	}
	p.ID = q.Get("producer")
	if err := segment.CheckProducer(p.ID); err != nil {
		return p, fmt.Errorf("producer: %w", err)
	}
	text := q.Get("sequence")
	if p.Sequence, err = strconv.ParseUint(text, 10, 64); err != nil || text[0] == '+' {
		return p, fmt.Errorf("%w: sequence=%q: give the producer's own number of this append, one more each time", errBadRequest, text)
	}
	return p, nil
}
