package objstore

import (
	"context"
	"errors"
	"fmt"
)

// publication is a conditional write that must end as won, lost or unknown.
type publication struct {
	op    Op
	key   string
	nonce string
	etag  string // If-Match; empty for create-once
	call  func(context.Context) (Info, error)
	// before is asked ahead of every attempt but the first, which its caller asked
	// for: what may no longer be published is not sent again. nil: always.
	before func() error
}

// publish makes the conditional write p until its outcome is known.
//
//	answer                        read-back       outcome
//	ok                            -               won
//	unavailable, put: conflict    -               not applied: again
//	exists, precondition,         own nonce       won: the answer of an own attempt was lost (K31, K13)
//	  unknown, not found          another's       lost, if no own attempt can have stood before it
//	                              absent          not applied yet: again, the condition guards a late arrival
//	                              unreadable      unknown
//	unknown, and a long ask       not now         unknown
//
// Complete differs in two answers: a conflict, or an upload that is gone while
// the key is absent, are returned as they are: the caller starts a new upload.
func (s *Store) publish(ctx context.Context, p publication) (Info, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	var unknown error // the first attempt that may have been applied
	for n := 0; ; n++ {
		info, err := s.publishOnce(ctx, p)
		if err == nil {
			return info, nil
		}
		if errors.Is(err, ErrAmbiguous) && unknown == nil {
			unknown = err
		}
		switch {
		case errors.Is(err, ErrAmbiguous) && RetryAfter(err) > MaxRetryAfter:
			return Info{}, err // who asks for so long is not to be read from either
		case p.decisive(err):
			if info, err, done := s.readBack(ctx, p, err, unknown); done {
				return info, err
			}
		case !p.retryable(err):
			return Info{}, p.verdict(err, unknown)
		}
		if n+1 >= s.cfg.Attempts || s.pause(ctx, n, RetryAfter(err)) != nil {
			return Info{}, p.verdict(err, unknown)
		}
		if p.before != nil {
			if berr := p.before(); berr != nil {
				return Info{}, p.verdict(errors.Join(berr, err), unknown)
			}
		}
	}
}

func (s *Store) publishOnce(ctx context.Context, p publication) (info Info, err error) {
	err = s.attempt(ctx, p.op, p.key, func(ctx context.Context) (err error) {
		info, err = p.call(ctx)
		return err
	})
	info.Key = p.key
	return info, err
}

// decisive answers are about what stands under the key: they call for a read.
func (p publication) decisive(err error) bool {
	return errors.Is(err, ErrExists) || errors.Is(err, ErrAmbiguous) || errors.Is(err, ErrPrecondition) ||
		(p.op == OpComplete && errors.Is(err, ErrNotFound))
}

func (p publication) retryable(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrShort) ||
		(p.op == OpPut && errors.Is(err, ErrConflict))
}

// verdict turns err into "unknown" if an earlier attempt may still stand or land.
func (p publication) verdict(err, unknown error) error {
	if unknown == nil || errors.Is(err, ErrAmbiguous) {
		return err
	}
	return &Error{Op: string(p.op), Key: p.key, Kind: ErrAmbiguous, RetryAfter: RetryAfter(err), Err: fmt.Errorf(
		"an earlier attempt (%w) may have been applied; then: %s: read the key before deciding", unknown, err.Error())}
}

// readBack decides by what stands under the key. done is false if the write is
// to be tried again.
func (s *Store) readBack(ctx context.Context, p publication, cause, unknown error) (info Info, err error, done bool) {
	info, err = s.standing(ctx, p.key)
	switch {
	case err == nil && info.Meta[MetaNonce] == p.nonce:
		return info, nil, true
	case err == nil && p.etag != "" && info.ETag == p.etag && !errors.Is(cause, ErrPrecondition):
		return Info{}, nil, false // what we would replace still stands
	case err == nil && p.etag == "":
		// Create-once: whatever stands came before every attempt of ours, or ours
		// stood and was deleted, which never-reused keys rule out.
		return Info{}, &Error{Op: string(p.op), Key: p.key, Kind: ErrExists, Err: errors.New("another writer's object stands there")}, true
	case err == nil:
		return Info{}, p.verdict(&Error{Op: string(p.op), Key: p.key, Kind: ErrPrecondition, Err: errors.New("another write came first: read it and decide anew")}, unknown), true
	case errors.Is(err, ErrNotFound) && errors.Is(cause, ErrAmbiguous):
		return Info{}, nil, false
	case errors.Is(err, ErrNotFound):
		// It was refused, yet nothing stands there: deleted in between, or (for a
		// complete) the upload is gone. With an unknown attempt before it, that one
		// may have stood and been deleted.
		return Info{}, p.verdict(cause, unknown), true
	}
	// Neither error is wrapped: errors.Is must find "unknown" here and nothing else.
	return Info{}, &Error{Op: string(p.op), Key: p.key, Kind: ErrAmbiguous, RetryAfter: RetryAfter(err), Err: fmt.Errorf(
		"%s; reading back: %s: read the key before deciding", cause.Error(), err.Error())}, true
}

// standing reads what stands under key. HEAD alone proves presence only: its 404
// has no code, so a missing bucket or an unknown access key looks the same.
// Absence is believed from a GET.
func (s *Store) standing(ctx context.Context, key string) (Info, error) {
	info, err := s.Head(ctx, key)
	if !errors.Is(err, ErrNotFound) {
		return info, err
	}
	err = s.retry(ctx, OpGet, key, func(ctx context.Context) error {
		body, got, err := s.driver.Get(ctx, key, Range{Offset: 0, Length: 1}, "")
		if err != nil {
			return err
		}
		info = got
		return body.Close()
	})
	if errors.Is(err, ErrRange) { // an empty object arrived since the HEAD
		return s.Head(ctx, key)
	}
	return info, err
}
