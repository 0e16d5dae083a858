package s3store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// sessions gives out the session that requests to a directory bucket are signed with.
//
// The SDK has such a source of its own. It renews a session behind a call, under that
// call's context, which ends with the call and takes the renewal with it; and it goes by
// this machine's clock: one that is behind signs with sessions that are over, for as
// long as it is behind. Here a session is renewed after four fifths of its life, which is
// the time between the store's own clock and the session's end, counted from its receipt
// on the monotonic clock or on the wall clock, whichever says more: the one stands still
// while a machine sleeps, the other may be set.
//
// One call at a time renews; the others go on with what they have until it is nearly
// over. A session that the store refuses is dropped, and the next call makes one.
type sessions struct {
	client *s3.Client // set once, before the first call
	bucket string
	clock  func() time.Time
	renews chan struct{} // holds a token: whoever takes it renews

	mu  sync.Mutex
	now held
}

// held is a session with its life.
type held struct {
	credentials aws.Credentials
	since       time.Time
	life        time.Duration
}

func newSessions(bucket string) *sessions {
	s := &sessions{bucket: bucket, clock: time.Now, renews: make(chan struct{}, 1)}
	s.renews <- struct{}{}
	return s
}

// lived is how much of its life a session had, from 0 to 1 and beyond.
func (h held) lived(now time.Time) float64 {
	if h.life <= 0 {
		return 2
	}
	age := max(now.Sub(h.since), now.Round(0).Sub(h.since.Round(0)))
	return float64(age) / float64(h.life)
}

const (
	renewAfter = 0.8  // of 5 minutes: a minute is left for the renewal
	overAfter  = 0.95 // 15 seconds are left for a request on its way
)

// Retrieve implements s3.ExpressCredentialsProvider.
func (s *sessions) Retrieve(ctx context.Context, _ string) (aws.Credentials, error) {
	h := s.current()
	lived := h.lived(s.clock())
	if lived < renewAfter {
		return h.credentials, nil
	}
	if lived < overAfter {
		select {
		case <-s.renews:
		default:
			return h.credentials, nil // somebody is at it
		}
	} else {
		select {
		case <-s.renews:
		case <-ctx.Done():
			return aws.Credentials{}, context.Cause(ctx)
		}
	}
	defer func() { s.renews <- struct{}{} }()
	if h = s.current(); h.lived(s.clock()) < renewAfter {
		return h.credentials, nil // renewed while this call waited
	}
	return s.renew(ctx, h)
}

func (s *sessions) current() held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// drop forgets a session that the store does not take any more.
func (s *sessions) drop(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.credentials.SessionToken == token {
		s.now = held{}
	}
}

// renew makes a session. It fails with the reason of the source, or goes on with the old
// one while that lasts.
func (s *sessions) renew(ctx context.Context, old held) (aws.Credentials, error) {
	out, err := s.client.CreateSession(ctx, &s3.CreateSessionInput{Bucket: &s.bucket})
	made := held{since: s.clock()}
	if err == nil {
		made.credentials, made.life, err = read(out, made.since)
	}
	if err != nil {
		if old.lived(s.clock()) < overAfter {
			return old.credentials, nil
		}
		return aws.Credentials{}, told(ctx, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = made
	return made.credentials, nil
}

// read takes the credentials from an answer, and how long they live by the store's clock.
func read(out *s3.CreateSessionOutput, now time.Time) (aws.Credentials, time.Duration, error) {
	c := out.Credentials
	if c == nil || c.AccessKeyId == nil || c.SecretAccessKey == nil || c.SessionToken == nil || c.Expiration == nil {
		return aws.Credentials{}, 0, errors.New("the answer to CreateSession holds no credentials")
	}
	if at, ok := awsmiddleware.GetServerTime(out.ResultMetadata); ok {
		now = at
	}
	return aws.Credentials{
		AccessKeyID: *c.AccessKeyId, SecretAccessKey: *c.SecretAccessKey, SessionToken: *c.SessionToken,
		Source: sessionSource,
	}, c.Expiration.Sub(now), nil
}

// sessionSource names where sessions come from, in errors.
const sessionSource = "CreateSession"

// told turns the failure of CreateSession into the error that the call is judged by, and
// leaves it where the call's end finds it (keepReason): the SDK passes on its text only.
func told(ctx context.Context, err error) error {
	var reason error
	var answer *smithyhttp.ResponseError
	var code smithy.APIError
	switch {
	case ctx.Err() != nil:
		reason = context.Cause(ctx)
	case errors.As(err, &answer) && errors.As(err, &code):
		refused := s3wire.Refused(sessionSource, answer.HTTPStatusCode(), code.ErrorCode())
		switch {
		case code.ErrorCode() == "NoSuchBucket":
			refused.Kind, refused.Next = objstore.ErrInvalid, "create the bucket, or correct the store's URL"
		case errors.Is(refused.Kind, objstore.ErrDenied):
			refused.Next = "check the credentials and the region, and that they may do s3express:CreateSession on this bucket"
		}
		reason = refused
	default:
		var from *s3wire.SourceError // the credentials behind the session
		if !errors.As(err, &from) {
			from = s3wire.Unreached(sessionSource, err)
		}
		reason = from
	}
	if kept, ok := ctx.Value(reasonKey{}).(*error); ok {
		*kept = reason
	}
	return reason
}

type reasonKey struct{}

// keepReason wraps a call: why it got no session is in its error for errors.As, and the
// session of a request that was refused as expired is dropped.
func (s *sessions) keepReason(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("KeepSessionReason",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			var reason error
			used := s.current().credentials.SessionToken
			out, meta, err := next.HandleInitialize(context.WithValue(ctx, reasonKey{}, &reason), in)
			var code smithy.APIError
			switch {
			case err == nil:
			case reason != nil:
				err = reason
			case errors.As(err, &code) && (code.ErrorCode() == "ExpiredToken" || code.ErrorCode() == "InvalidToken"):
				s.drop(used)
			}
			return out, meta, err
		}), middleware.Before)
}

// use sets the client up to sign with sessions.
func (s *sessions) use(o *s3.Options) {
	o.ExpressCredentials = s
	o.APIOptions = append(o.APIOptions, s.keepReason)
}
