package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// wayOut bounds the end of a service as a whole, from the signal or the fault on: what
// heeds no deadline (a lock of SQLite that somebody else holds, a disk that hangs) is
// left behind with the process. A crash at any of its steps loses nothing, and so does this.
type wayOut struct {
	limit time.Duration
	log   *slog.Logger
	begun chan struct{} // closed once the way out has begun

	mu    sync.Mutex // by, doing, left
	by    time.Time  // when it has to be over; zero until it begins
	doing string
	left  error // what steps said that they could not do
}

func newWayOut(limit time.Duration, log *slog.Logger) *wayOut {
	return &wayOut{limit: limit, log: log, begun: make(chan struct{}), doing: "starting"}
}

// reserve is kept of the limit for closing what was opened: a step that heeds its deadline
// then still says what it could not do.
func (o *wayOut) reserve() time.Duration { return min(o.limit/10, 2*time.Second) }

// begin starts the clock; only its first call does. It returns when the steps have to be over.
func (o *wayOut) begin() (steps time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by.IsZero() {
		o.by = time.Now().Add(o.limit)
		close(o.begun)
	}
	return o.by.Add(-o.reserve())
}

// over is when the process has to be gone.
func (o *wayOut) over() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.by
}

// step says what is being done from now on.
func (o *wayOut) step(doing string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doing = doing
}

// leave takes down what a step could not do, and tells the log: the error itself comes last.
func (o *wayOut) leave(err error) error {
	if err == nil {
		return nil
	}
	o.mu.Lock()
	o.left = errors.Join(o.left, err)
	o.mu.Unlock()
	o.log.Warn("the way out leaves something undone", "error", err, "next", nextStart)
	return err
}

// nextStart holds for every service: those without a disk of their own left nothing on it.
const nextStart = "nothing acknowledged is lost: rows that are not published are on this disk, and the next start with the same --dir goes on with them; " +
	"a lease that was not given up ends by itself, and does not stand in the way of that start"

// cut is how a way out ends that took all of its time.
func (o *wayOut) cut() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log.Error("the way out took all of its time and is cut", "while", o.doing, "limit", o.limit.String(), "next", nextStart)
	err := fmt.Errorf("--shutdown-timeout %v was over while %s: the rest of the way out was left; %s", o.limit, o.doing, nextStart)
	return &exitError{code: exitUnavailable, err: errors.Join(o.left, err)}
}

// within runs a service from its opening to its closing. It returns with the service, or when
// the way out has taken --shutdown-timeout: the process then has to end.
func (l *listenFlags) within(ctx context.Context, log *slog.Logger, service func() error) error {
	o := newWayOut(l.shutdown, log)
	l.out = o
	defer context.AfterFunc(ctx, func() { o.begin() })()
	done := make(chan error, 1)
	go func() { done <- service() }() // waited for, unless the process ends without it
	select {
	case err := <-done:
		return err
	case <-o.begun:
	}
	timer := time.NewTimer(time.Until(o.over()))
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return o.cut()
	}
}

// closing closes the tier as the last step of the way out.
func (o *wayOut) closing(err error, t *tier) error {
	o.step("closing the catalog and the buckets")
	return closing(err, t)
}
