package s3wire

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/strandline/strandline/objstore"
)

// Verdict turns what one call saw into an error of one kind, or nil. err is what the
// client library returned; the key is the caller's, without the prefix.
//
// The order is: an answer that names an error code; an answer that is none; an
// answer with a bare status; no answer. The library's own opinion counts only when
// nothing was sent at all.
func Verdict(ex *Exchange, key string, err error) error {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if err == nil && ex.bad == nil && ex.code == "" {
		return nil
	}
	kind, cause := ex.judge(err)
	e := &objstore.Error{Op: string(ex.Op), Key: key, Kind: kind, Err: cause}
	if ex.status >= http.StatusBadRequest || ex.code != "" {
		e.RetryAfter, e.Throttled = RetryAfter(ex.header, time.Now()), ex.overloaded()
	}
	return e
}

// Unproven is the verdict on an answer of success that lacks what proves it, such
// as an ETag.
func Unproven(ex *Exchange, key, lacks string) error {
	kind := objstore.ErrUnavailable
	if ex.Op.Mutation() {
		kind = objstore.ErrAmbiguous
	}
	return &objstore.Error{Op: string(ex.Op), Key: key, Kind: kind, Err: &Answer{Status: ex.Status(), Hint: "it lacks " + lacks}}
}

func (ex *Exchange) judge(err error) (kind, cause error) {
	switch {
	case !ex.attempted:
		return ex.judgeUnsent(err)
	case ex.status == 0:
		return ex.judgeSilence(err)
	case ex.bad != nil && ex.code == "":
		return ex.unknown(), ex.bad
	}
	hint, kind := ex.judgeAnswer()
	answer := &Answer{Status: ex.status, Code: ex.code, Message: ex.message, RequestID: ex.requestID, Hint: hint}
	if ex.status < http.StatusMultipleChoices && ex.code == "" {
		// A proper answer of success that the library could not read.
		return ex.unknown(), errors.Join(answer, err)
	}
	return kind, answer
}

// unknown is the kind for "no usable answer to a request that was sent".
func (ex *Exchange) unknown() error {
	if ex.Op.Mutation() {
		return objstore.ErrAmbiguous
	}
	return objstore.ErrUnavailable
}

// judgeAnswer decides on the code first and on the status only without one.
func (ex *Exchange) judgeAnswer() (hint string, kind error) {
	switch {
	case ex.status == http.StatusPreconditionFailed || ex.code == "PreconditionFailed":
		if ex.IfNoneMatch {
			return "", objstore.ErrExists
		}
		return "", objstore.ErrPrecondition
	case ex.IfMatch && ex.code == "NoSuchKey" && ex.Op.Mutation():
		// Replacing what is not there: the condition did not hold.
		return "", objstore.ErrPrecondition
	}
	if ex.asked || expired(ex.code) {
		return ex.judgeExpiry()
	}
	if hint, kind := kindOfCode(ex.Op, ex.code); kind != nil {
		return hint, kind
	}
	return ex.judgeStatus()
}

func (ex *Exchange) judgeStatus() (hint string, kind error) {
	if ex.status < http.StatusMultipleChoices {
		return "", ex.unknown() // an error inside a 200, of a code that we do not know
	}
	switch ex.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		if hint := ex.skewed(time.Now()); hint != "" {
			return hint, objstore.ErrDenied
		}
		return "check the credentials and what they may do in this bucket", objstore.ErrDenied
	case http.StatusConflict:
		return "", objstore.ErrConflict
	case http.StatusRequestedRangeNotSatisfiable:
		return "", objstore.ErrRange
	case http.StatusTooManyRequests:
		return "", objstore.ErrUnavailable
	case http.StatusInsufficientStorage:
		return "make room in the store", objstore.ErrNoSpace
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return "", objstore.ErrUnsupported
	case http.StatusServiceUnavailable:
		if ex.code != "" {
			return "", objstore.ErrUnavailable // the store itself refused
		}
		return "", ex.unknown() // a proxy's: the store behind it may have acted
	case http.StatusNotFound:
		// Not a verdict about the key: a store says NoSuchKey. This is a proxy's page,
		// or a code that we do not know.
		return "the answer does not say what was not found: check the endpoint", ex.unknown()
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect, http.StatusFound:
		return "the bucket is elsewhere: check region and endpoint", objstore.ErrInvalid
	}
	if ex.status >= http.StatusInternalServerError {
		return "", ex.unknown()
	}
	return "", objstore.ErrInvalid
}

// HintBucket is what to do about a name that no bucket can have.
const HintBucket = "correct the bucket in the store's URL"

// codeSpeaksTLS is our own: the answer to a plain request on a TLS port has no code.
const codeSpeaksTLS = "TLSRequired"

// kindOfCode is the table of S3 error codes, as AWS, MinIO and versitygw use them.
// A nil kind: the code alone does not decide.
func kindOfCode(op objstore.Op, code string) (hint string, kind error) {
	if loadCode(code) {
		return "", objstore.ErrUnavailable
	}
	switch code {
	case "NoSuchKey":
		return "", objstore.ErrNotFound
	case "NoSuchUpload":
		return "the upload was completed or aborted", objstore.ErrNotFound
	case "NoSuchBucket":
		return "create the bucket, or correct the store's URL", objstore.ErrInvalid
	case "InvalidBucketName":
		return HintBucket, objstore.ErrInvalid
	case "ConditionalRequestConflict", "OperationAborted", "ExistingObjectIsDirectory", "ObjectParentIsFile":
		return "", objstore.ErrConflict
	case "InvalidRange":
		return "", objstore.ErrRange

	case "RequestTimeTooSkewed":
		return "this machine's clock and the store's differ by more than 15 minutes: set the clock", objstore.ErrDenied
	case "AccessDenied", "SignatureDoesNotMatch", "InvalidAccessKeyId", "XAdminUserNotFound",
		"ExpiredToken", "InvalidToken", "InvalidSecurity", "AccountProblem", "AllAccessDisabled", "InvalidObjectState", "AuthorizationQueryParametersError":
		return "check the credentials and what they may do in this bucket", objstore.ErrDenied
	case codeSpeaksTLS:
		return plainHint, objstore.ErrInvalid
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException":
		return "check region and endpoint", objstore.ErrInvalid

	// Refused by the store, in its own words: nothing was applied.
	case "RequestTimeout", "XMinioServerNotInitialized":
		return "", objstore.ErrUnavailable
	// The bytes changed or were cut on the way; the store did not take them.
	case "BadDigest", "InvalidDigest", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch", "IncompleteBody", "MalformedXML":
		return "the bytes changed on the way: if it stays so, check the network and this machine's memory", objstore.ErrUnavailable

	case "XMinioStorageFull", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded":
		return "make room in the store", objstore.ErrNoSpace
	case "NotImplemented", "MethodNotAllowed", "APINotSupported":
		return "", objstore.ErrUnsupported
	case "InternalError":
		if op.Mutation() {
			return "", objstore.ErrAmbiguous
		}
		return "", objstore.ErrUnavailable
	}
	return "", nil
}

// judgeSilence is for a request that was begun and not answered.
func (ex *Exchange) judgeSilence(err error) (kind, cause error) {
	if ex.silence != nil {
		err = ex.silence
	}
	cause = withoutURL(err)
	if ex.connected && ex.plain && hungUp(err) {
		return ex.unknown(), hinted(cause, plainHint)
	}
	if ex.connected {
		return ex.unknown(), cause
	}
	// No connection was had, so nothing can have arrived.
	if text, kind := judgeHandshake(err); kind != nil {
		return kind, hinted(cause, text)
	}
	if text := awayHint(err); text != "" {
		cause = hinted(cause, text)
	}
	return objstore.ErrUnavailable, cause
}

// judgeUnsent is for a call that the library gave up before any request: its context
// had ended, or it could not get credentials. The drivers check arguments themselves,
// so that nothing else is left.
func (ex *Exchange) judgeUnsent(err error) (kind, cause error) {
	var source *SourceError
	if errors.As(err, &source) {
		return source.Kind, source // the library's wrapping says nothing more
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return objstore.ErrUnavailable, err
	}
	return objstore.ErrUnavailable, hinted(withoutURL(err), "nothing was sent: check where the credentials come from")
}

type hint struct {
	error
	text string
}

func hinted(err error, text string) error { return hint{err, text} }
func (h hint) Error() string              { return h.error.Error() + ": " + h.text }
func (h hint) Unwrap() error              { return h.error }

// withoutURL drops the URL that net/http puts before its errors: it repeats the key,
// and nothing that a client library adds to a query belongs into a message.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
