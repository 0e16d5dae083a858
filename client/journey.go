package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// maxHops bounds how often one round is sent on from owner to owner.
const maxHops = 8

// journey is one call's way from server to server.
//
//	at ── no answer ──────────> the next configured URL ── all asked ──> wait, a new round
//	   ── 421, owner known ──-> the owner, at once
//	   ── 421, owner unknown ─> the next configured URL
//	   ── 503 ───────────────-> the same, when it said, until the context ends; another, with
//	                            patience, if it will not have the shard much longer (moving)
//	   ── anything else ─────-> the caller's
//
// Rounds end with the client's patience.
type journey struct {
	*Client
	q     *call
	at    string   // the server asked now
	asked []string // in this round
	hops  int      // in this round
	began time.Time
	wait  backoff
	lost  error // an attempt that was sent and has no answer
}

// do makes a call: its answer is no refusal.
func (c *Client) do(ctx context.Context, q *call) (*answer, error) {
	j := &journey{Client: c, q: q}
	j.round()
	for {
		a, err := c.attempt(ctx, q, j.at)
		if err == nil && a.status == http.StatusOK {
			c.remember(q.place, j.at)
			return a, nil
		}
		var p *Problem
		if err == nil {
			p = problemOf(j.at, a.status, a.header, a.body)
			err = p
		}
		c.log.Debug("attempt failed", "op", q.op, "server", j.at, "err", err)
		if ctx.Err() != nil {
			return nil, j.ended(ctx, err)
		}
		pause, on := j.judge(p, err)
		if !on {
			return nil, j.failed(err)
		}
		if pause > 0 {
			c.tell(q, err)
		}
		if !sleep(ctx, pause) {
			return nil, j.ended(ctx, err)
		}
	}
}

// tell says, once a call, why it waits.
func (c *Client) tell(q *call, err error) {
	if c.cfg.OnRetry != nil && !q.told {
		q.told = true
		c.cfg.OnRetry(q.op, err)
	}
}

// round begins where the place was served last, else at the first URL.
func (j *journey) round() {
	j.asked, j.hops = j.asked[:0], 0
	if j.at = j.ownerOf(j.q.place); j.at == "" {
		j.at = j.urls[0]
	}
}

// judge says whether to go on, after which pause; j.at is then where.
func (j *journey) judge(p *Problem, err error) (time.Duration, bool) {
	if p == nil {
		return j.unanswered(err)
	}
	switch p.Status {
	case http.StatusMisdirectedRequest:
		return j.sentOn(p)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusInsufficientStorage: // the last: until there is room
		return j.refused(p)
	case http.StatusBadGateway, http.StatusGatewayTimeout: // a proxy's word: the server may have it
		return j.unanswered(&lostError{sent: true, err: p})
	case http.StatusNotImplemented: // a reader, asked to append
		j.forgetPlace(j.q.place)
		return 0, j.another()
	case http.StatusUnsupportedMediaType:
		return 0, j.unpacked(p)
	}
	return 0, false
}

// unanswered: nobody there, or the answer is lost.
func (j *journey) unanswered(err error) (time.Duration, bool) {
	var lost *lostError
	if !errors.As(err, &lost) {
		return 0, false
	}
	if lost.sent && !j.q.repeat {
		j.lost = lost
		return 0, false
	}
	if lost.sent {
		j.lost = lost
	}
	j.forgetServer(j.at)
	return j.elsewhere()
}

// sentOn: the server says who owns the place.
func (j *journey) sentOn(p *Problem) (time.Duration, bool) {
	j.forgetPlace(j.q.place)
	owner, err := "", error(nil)
	if p.Owner != "" {
		if owner, err = trusted(p.Owner, j.at); err != nil {
			p.Detail += ": " + err.Error()
			return 0, false
		}
	}
	// An owner that was asked in this round sent us here: the shard is between two.
	if owner == "" || owner == j.at || slices.Contains(j.asked, owner) || j.hops >= maxHops {
		return j.elsewhere()
	}
	j.asked = append(j.asked, j.at)
	j.at = owner
	j.hops++
	return 0, true
}

// elsewhere is the next URL, or a new round after a pause.
func (j *journey) elsewhere() (time.Duration, bool) {
	if j.another() {
		return 0, true
	}
	if !j.patient() || !j.reached.Load() {
		return 0, false
	}
	j.round()
	return j.wait.next(), true
}

// patient begins the client's patience, or says whether it lasts.
func (j *journey) patient() bool {
	if j.began.IsZero() {
		j.began = time.Now()
	}
	return j.cfg.Patience >= 0 && time.Since(j.began) < j.cfg.Patience
}

// another goes to a URL that was not asked in this round, if there is one.
func (j *journey) another() bool {
	j.asked = append(j.asked, j.at)
	for _, u := range j.urls {
		if !slices.Contains(j.asked, u) {
			j.at = u
			return true
		}
	}
	return false
}

// wroteNothing are the refusals that come before anything is written. Others may come after:
// an append that waits for the bucket is on the disk already.
var wroteNothing = []string{"busy", "backpressure", "disk-full", "epoch-over"}

// moving are the refusals of a server that will not have the shard much longer, or not
// before somebody sees to it: they take patience as a silence does.
var moving = []string{"fenced", "closing", "halted", "poisoned", "lease-lost", "chain-closed"}

// refused: come back later. A server that will take the rows answers, so patience begins anew.
// What was taken in part is the caller's: all of it again would be there twice.
func (j *journey) refused(p *Problem) (time.Duration, bool) {
	if p.Durable != nil {
		return 0, false
	}
	if !j.q.repeat && !slices.Contains(wroteNothing, p.Code) {
		j.lost = p
		return 0, false
	}
	if !slices.Contains(wroteNothing, p.Code) {
		j.lost = p
	}
	pause := asked(p.RetryAfter)
	if p.RetryAfter == 0 {
		pause = j.wait.next()
	}
	if slices.Contains(moving, p.Code) {
		j.forgetPlace(j.q.place)
		j.after(j.at)
		return pause, j.patient()
	}
	j.began = time.Time{}
	j.asked, j.hops = j.asked[:0], 0
	return pause, true
}

// after begins a round at the URL behind one, so that a server that stays refused does not
// hide the others.
func (j *journey) after(server string) {
	j.asked, j.hops = j.asked[:0], 0
	j.at = j.urls[(slices.Index(j.urls, server)+1)%len(j.urls)]
}

// unpacked sends a refused encoding's body as it is, from now on all of them.
func (j *journey) unpacked(p *Problem) bool {
	if j.q.plain == nil || p.Code != "unsupported-encoding" {
		return false
	}
	body, err := j.q.plain()
	if err != nil {
		return false
	}
	j.plain.Store(true)
	j.q.body, j.q.plain = body, nil
	j.q.header.Del("Content-Encoding")
	return true
}

// failed is the end of a call: what was said last, and whether something may have been done.
func (j *journey) failed(err error) error {
	var p *Problem
	var lost *lostError
	if errors.As(err, &lost) {
		err = lost.err
		if !errors.As(err, &p) {
			err = fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
	}
	return j.named(err)
}

// ended is a call that its context ended.
func (j *journey) ended(ctx context.Context, last error) error {
	var lost *lostError
	if errors.As(last, &lost) && lost.sent {
		j.lost = lost
	}
	cause := context.Cause(ctx)
	if errors.Is(last, cause) {
		return j.named(last)
	}
	return j.named(fmt.Errorf("%w: %w", cause, last))
}

// named adds what was being done, and that it may have been.
func (j *journey) named(err error) error {
	if j.lost != nil && j.q.method != http.MethodGet {
		return fmt.Errorf("%s: %w: it may have been carried out: %w", j.q.op, ErrUnknown, err)
	}
	return fmt.Errorf("%s: %w", j.q.op, err)
}
