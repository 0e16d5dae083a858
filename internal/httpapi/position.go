package httpapi

import (
	"fmt"
	"math"
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

// positionOf reads a token, or a seq of an epoch. Seqs begin at 1; the 0 that means "no
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
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil || seq == 0 || text[0] == '+' {
		return segment.Pos{}, nil, fmt.Errorf("%w: %s=%q: give a seq from 1, or a token like e1.t3.4711", errBadRequest, name, text)
	}
	return segment.Pos{Epoch: epoch, Seq: segment.Seq(seq)}, nil, nil
}
