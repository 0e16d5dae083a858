package otlp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// ErrNever is of rows that can never be taken, whoever is asked: their sender is told to
// drop them. An Append that learned so from another process wraps it.
var ErrNever = errors.New("rows that can never be taken")

// LaterError is of a process that answered when to come again.
type LaterError struct {
	After time.Duration
	// Slow: it has too much to do, rather than something that it lacks.
	Slow bool
	Err  error
}

func (e *LaterError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *LaterError) Unwrap() error { return e.Err }

// never says whether the rows could not be taken at any time.
func never(err error) bool {
	for _, kind := range []error{ErrNever, segment.ErrName, segment.ErrTooLarge, localtier.ErrTooLarge, localtier.ErrInvalid} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// refusal is a request that nobody has to send again.
type refusal struct {
	http int
	text string
}

func (e *refusal) Error() string { return e.text }

func tooLarge(format string, args ...any) error {
	return &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf(format, args...)}
}

func malformed(format string, args ...any) error {
	return &refusal{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// verdict is an error as both protocols say it.
type verdict struct {
	http  int
	code  codes.Code
	text  string
	after time.Duration // 0: not to be sent again
}

const (
	// leastAfter is the least that Retry-After can say.
	leastAfter = time.Second
	// maxText bounds an answer's text.
	maxText = 1 << 10
)

// verdictOf says what a sender is to do. Whatever is not known to be the request's own
// fault may be tried again: a sender that is told otherwise drops its records.
func verdictOf(err error) verdict {
	v := verdict{http: http.StatusServiceUnavailable, code: codes.Unavailable, text: err.Error(), after: leastAfter}
	if len(v.text) > maxText {
		v.text = v.text[:maxText]
	}
	var no *refusal
	if errors.As(err, &no) {
		return verdict{http: no.http, code: codeOf(no.http), text: v.text}
	}
	var pressure *localtier.BackpressureError
	var epoch *localtier.EpochError
	var later *LaterError
	slow := errors.Is(err, errBusy) || errors.Is(err, wal.ErrBackpressure)
	if errors.As(err, &pressure) {
		slow, v.after = true, max(v.after, pressure.RetryAfter)
	}
	if errors.As(err, &later) {
		slow, v.after = slow || later.Slow, max(v.after, later.After)
	}
	if slow {
		v.http, v.code = http.StatusTooManyRequests, codes.ResourceExhausted
	}
	if errors.As(err, &epoch) {
		v.after = max(v.after, epoch.RetryAfter)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		v.text = "the rows are not durable in time; send them again: " + v.text
	}
	return v
}

// status is the verdict as google.rpc.Status; RetryInfo stands in it exactly if the
// request may be sent again, for that is what makes RESOURCE_EXHAUSTED retryable.
func (v verdict) status() *status.Status {
	st := status.New(v.code, v.text)
	if v.after == 0 {
		return st
	}
	detailed, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(v.after)})
	if err != nil {
		return st // only an OK has no details
	}
	return detailed
}
