package httpapi

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/strandline/strandline/segment"
)

// bounds are what a read asks for.
type bounds struct {
	from, to segment.Pos // inclusive; zero: no bound
	limit    int
	token    *segment.Token // of from or after, to be held against the history
	follow   bool
}

// lastEventHeader is what a browser sends when it connects to server-sent events again: the id
// of the last one, which goes before what the address says.
const lastEventHeader = "Last-Event-ID"

// asksOf is boundsOf for a request that may follow.
func asksOf(r *http.Request, epoch segment.Epoch) (b bounds, err error) {
	q := r.URL.Query()
	if text := q.Get("follow"); text != "" {
		if b.follow, err = strconv.ParseBool(text); err != nil {
			return b, fmt.Errorf("%w: follow=%q: give true or false", errBadRequest, text)
		}
	}
	follow := b.follow
	if id := r.Header.Get(lastEventHeader); follow && id != "" {
		if !strings.HasPrefix(id, "e") {
			return b, fmt.Errorf("%w: %s: %q is no token", errBadRequest, lastEventHeader, id)
		}
		q.Del("from")
		q.Set("after", id)
	}
	if b, err = boundsOf(q, epoch); err != nil {
		return b, err
	}
	if b.follow = follow; follow && b.to != (segment.Pos{}) {
		return b, fmt.Errorf("%w: give follow or to, not both: what is followed has no end", errBadRequest)
	}
	return b, nil
}

// boundsOf reads ?from=&after=&to=&limit=. Each position is a seq of the epoch, or a token;
// from and to are inclusive, after is the one before the first.
func boundsOf(q url.Values, epoch segment.Epoch) (b bounds, err error) {
	b.limit = math.MaxInt
	if b.from, b.token, err = positionOf("from", q.Get("from"), epoch); err != nil {
		return b, err
	}
	if q.Get("after") != "" {
		if q.Get("from") != "" {
			return b, fmt.Errorf("%w: give from or after, not both", errBadRequest)
		}
		if b.from, b.token, err = positionOf("after", q.Get("after"), epoch); err != nil {
			return b, err
		}
		if b.from.Seq == math.MaxUint64 {
			return b, fmt.Errorf("%w: after=%d: nothing can be behind it", errBadRequest, b.from.Seq)
		}
		b.from = b.from.Next()
	}
	if b.to, _, err = positionOf("to", q.Get("to"), epoch); err != nil {
		return b, err
	}
	if b.to != (segment.Pos{}) && b.to.Less(b.from) && q.Get("after") == "" {
		return b, fmt.Errorf("%w: to=%d lies before from=%d", errBadRequest, b.to.Seq, b.from.Seq)
	}
	if l := q.Get("limit"); l != "" {
		if b.limit, err = strconv.Atoi(l); err != nil || b.limit < 1 {
			return b, fmt.Errorf("%w: limit=%q: give a number from 1", errBadRequest, l)
		}
	}
	return b, nil
}

// positionOf reads a token, a seq of an epoch, or EPOCH.SEQ: a row that was read from the bucket
// has no term, and needs none, for no history is without it. Seqs begin at 1; the 0 that means "no
// bound" to readers is written by leaving the bound out.
func positionOf(name, text string, epoch segment.Epoch) (segment.Pos, *segment.Token, error) {
	if text == "" {
		return segment.Pos{}, nil, nil
	}
	if strings.HasPrefix(text, "e") {
		tok, err := segment.ParseToken(text)
		if err != nil {
			return segment.Pos{}, nil, fmt.Errorf("%w: %s: %w", errBadRequest, name, err)
		}
		if tok.Seq == 0 && name != "after" {
			return segment.Pos{}, nil, fmt.Errorf("%w: %s=%s: no row has seq 0; give it to after", errBadRequest, name, tok)
		}
		return tok.Pos(), &tok, nil
	}
	bad := fmt.Errorf("%w: %s=%q: give a seq from 1, EPOCH.SEQ, or a token like e1.t3.4711", errBadRequest, name, text)
	tail := text
	if head, rest, two := strings.Cut(text, "."); two {
		e, err := strconv.ParseUint(head, 10, 32)
		if err != nil || e == 0 || head[0] == '+' {
			return segment.Pos{}, nil, bad
		}
		epoch, tail = segment.Epoch(e), rest
	}
	seq, err := strconv.ParseUint(tail, 10, 64)
	if err != nil || seq == 0 || tail[0] == '+' {
		return segment.Pos{}, nil, bad
	}
	return segment.Pos{Epoch: epoch, Seq: segment.Seq(seq)}, nil, nil
}
