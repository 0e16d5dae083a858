package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/strandline/strandline/segment"
)

// Problem is what a server refused a request with (RFC 9457). Codes are stable.
type Problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"` // empty: the answer was no problem document
	Title  string `json:"title"`
	Detail string `json:"detail,omitempty"`
	// Owner is the URL where the shard is served, if the server knows (ErrNotOwner).
	Owner string `json:"owner,omitempty"`
	// First is the first seq that remains (ErrTrimmed, ErrDeleted; ErrDamage, where an operator
	// accepted the loss).
	First *segment.Seq `json:"first,omitempty"`
	// From is First with its epoch, as ReadOptions.From takes it.
	From string `json:"from,omitempty"`
	// Forked is the first seq that is not the token's history (ErrForked).
	Forked *segment.Seq `json:"forked,omitempty"`
	// Expect is the sequence that the producer has to go on with (ErrSequence).
	Expect *uint64 `json:"expect,omitempty"`
	// Durable are the first rows of a refused append, which are there all the same (ErrPartial).
	Durable *Durable `json:"durable,omitempty"`
	// RequestID is how the server's log calls the request.
	RequestID string `json:"request_id,omitempty"`
	// RetryAfter is when to come back; 0: the server did not say.
	RetryAfter time.Duration `json:"-"`
	// Server is the URL that answered so.
	Server string `json:"-"`
}

// Durable are the first rows of an append, and where they stand.
type Durable struct {
	Rows  int           `json:"rows"`
	Epoch segment.Epoch `json:"epoch"`
	First segment.Seq   `json:"first"`
	Last  segment.Seq   `json:"last"`
}

func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if p.Owner != "" && !strings.Contains(text, p.Owner) {
		text += "; its owner is " + p.Owner
	}
	if p.Code == "" {
		return fmt.Sprintf("%s answered %d: %s", p.Server, p.Status, text)
	}
	if p.Status >= http.StatusInternalServerError && p.RequestID != "" {
		return fmt.Sprintf("%s (%s, request %s)", text, p.Code, p.RequestID)
	}
	return fmt.Sprintf("%s (%s)", text, p.Code)
}

// Is makes errors.Is(err, ErrTrimmed) and its like true.
func (p *Problem) Is(kind error) bool {
	switch kind {
	case ErrUnavailable:
		return p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests || p.Status == http.StatusInsufficientStorage
	case ErrPartial:
		return p.Durable != nil
	}
	return kinds[p.Code] == kind
}

// problemOf reads a refusal.
func problemOf(server string, status int, h http.Header, body []byte) *Problem {
	p := &Problem{}
	if json.Unmarshal(body, p) != nil || p.Code == "" {
		p = &Problem{Title: http.StatusText(status), Detail: fmt.Sprintf("%.200q", body)}
	}
	p.Status, p.Server = status, server
	if p.RequestID == "" {
		p.RequestID = h.Get("X-Request-Id")
	}
	p.RetryAfter = retryAfter(h.Get("Retry-After"))
	return p
}

// retryAfter reads seconds; a date is what proxies send.
func retryAfter(text string) time.Duration {
	if s, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		// No more than a Duration holds: beyond, it would be negative, or none at all.
		return time.Duration(min(s, uint64(math.MaxInt64/time.Second))) * time.Second //nolint:gosec // within
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}
