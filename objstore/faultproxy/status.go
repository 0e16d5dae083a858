package faultproxy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// Status answers in the server's place. The request is read whole, so that the client
// gets the answer and not a broken connection.
type Status struct {
	Code        int
	ContentType string
	Body        string // not sent to a HEAD
	RetryAfter  int    // seconds; 0: no header
	// After: the request is applied first, and the server's own answer is lost.
	After bool
}

// Applied is the same answer given after the request was applied.
func (f Status) Applied() Status {
	f.After = true
	return f
}

// Refuse is a status with an error document.
func Refuse(status int, code string) Status {
	return Status{Code: status, ContentType: "application/xml", Body: fmt.Sprintf(
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>faultproxy</Message><RequestId>0</RequestId></Error>", code)}
}

// InternalError is a store's 500.
func InternalError() Status { return Refuse(http.StatusInternalServerError, "InternalError") }

// SlowDown is a throttling 503; retryAfter in seconds, 0 for none.
func SlowDown(retryAfter int) Status {
	f := Refuse(http.StatusServiceUnavailable, "SlowDown")
	f.RetryAfter = retryAfter
	return f
}

// TooMany is a load balancer's 429, without an error document.
func TooMany() Status {
	return Status{Code: http.StatusTooManyRequests, ContentType: "text/plain", Body: "too many requests"}
}

// Conflict is a 409: OperationAborted, ConditionalRequestConflict.
func Conflict(code string) Status { return Refuse(http.StatusConflict, code) }

// Skewed is what a store says to a client whose clock is wrong.
func Skewed() Status { return Refuse(http.StatusForbidden, "RequestTimeTooSkewed") }

// ErrorIn200 is a success whose body is an error document.
func ErrorIn200(code string) Status { return Refuse(http.StatusOK, code) }

// Page is an HTML page in place of an answer.
func Page(status int) Status {
	return Status{Code: status, ContentType: "text/html; charset=utf-8", Body: "<!DOCTYPE html><html><body>Nothing here</body></html>"}
}

// Empty is an answer without a body and without any header of a store.
func Empty(status int) Status { return Status{Code: status} }

func (f Status) strike(x *exchange) {
	body, err := x.hold()
	if err != nil {
		x.sever()
		return
	}
	if f.After {
		_, _ = x.apply(body) // the server's own answer is the one that is lost
	}
	h := x.w.Header()
	if f.ContentType != "" {
		h.Set("Content-Type", f.ContentType)
	}
	if f.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	h.Set("Content-Length", strconv.Itoa(len(f.Body)))
	x.w.WriteHeader(f.Code)
	if x.r.Method != http.MethodHead {
		_, _ = io.WriteString(x.w, f.Body) // a client that is gone needs no answer
	}
}
