package otlp

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
)

// asProblem is what the other routes of a process, and what stands around all of them, refuse
// requests with.
const asProblem = "application/problem+json"

// InForm says what others refuse of the requests to ServeHTTP, a guard or a limit, in the form
// that the OTLP specification has for it: google.rpc.Status as protobuf or JSON, as the request
// was. Other answers go through as they are.
func InForm(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		form, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
		if err != nil || form != asProtobuf {
			form = asJSON
		}
		t := &translator{ResponseWriter: w, form: form}
		next.ServeHTTP(t, req)
		t.tell()
	})
}

// translator keeps a problem document back.
type translator struct {
	http.ResponseWriter
	form string
	code int // of the problem; 0: none was answered
	body bytes.Buffer
	told bool
}

// tell answers with the problem, if there is one.
func (t *translator) tell() {
	if t.code != 0 && !t.told {
		t.told = true
		fail(t.ResponseWriter, t.form, t.refusal())
	}
}

// FlushError sends an answer on its way before its handler ends. A problem is whole by then;
// without it, the flush would answer 200.
func (t *translator) FlushError() error {
	t.tell()
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (t *translator) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *translator) WriteHeader(code int) {
	if t.code == 0 && t.Header().Get("Content-Type") == asProblem {
		t.code = code
		return
	}
	t.ResponseWriter.WriteHeader(code)
}

func (t *translator) Write(p []byte) (int, error) {
	if t.code != 0 {
		return t.body.Write(p) // the process's own, and short
	}
	return t.ResponseWriter.Write(p)
}

// refusal is the problem as a verdict.
func (t *translator) refusal() error {
	var p struct {
		Code, Title, Detail string
		RequestID           string `json:"request_id"`
	}
	if json.Unmarshal(t.body.Bytes(), &p) != nil || p.Detail == "" {
		p.Detail = p.Title
	}
	if p.Code != "" {
		p.Detail += " (" + p.Code + ", request " + p.RequestID + ")" // the form has no place of their own for them
	}
	if s, err := strconv.Atoi(t.Header().Get("Retry-After")); err == nil && t.code == http.StatusServiceUnavailable {
		return &LaterError{After: time.Duration(s) * time.Second, Err: errors.New(p.Detail)}
	}
	return &refusal{t.code, p.Detail}
}

// codeOf is the gRPC code of a refusal, for those who look at it rather than at HTTP's.
func codeOf(status int) codes.Code {
	switch status {
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusRequestTimeout:
		return codes.DeadlineExceeded
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return codes.Unimplemented
	case http.StatusServiceUnavailable:
		return codes.Unavailable
	}
	if status >= http.StatusInternalServerError {
		return codes.Internal
	}
	return codes.InvalidArgument
}
