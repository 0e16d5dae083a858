package s3wire

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/strandline/strandline/objstore"
)

// How long the sources of credentials may take.
const (
	// MetadataTimeout bounds the question to an instance's metadata service, which is on
	// the same host and answers in milliseconds, or is not there. Outside a cloud the
	// address leads nowhere, and every start would wait for this long.
	MetadataTimeout = 2 * time.Second
	// SourceTimeout bounds the others: a token service, a single sign-on, a process.
	SourceTimeout = 20 * time.Second
)

// SourceError is the failure of the place that credentials come from. It holds none of
// what that place answered but a status and a code: such answers carry secrets, and quote
// tokens in their messages.
type SourceError struct {
	Source string // "the web identity of AWS_WEB_IDENTITY_TOKEN_FILE" …
	Kind   error  // objstore.ErrDenied or objstore.ErrUnavailable
	Detail string
	Next   string // what to do
}

func (e *SourceError) Error() string {
	s := "credentials from " + e.Source + ": " + e.Detail
	if e.Next != "" {
		s += ": " + e.Next
	}
	return s
}

// NoCredentials is the error when no source is configured, and names the sources.
func NoCredentials(ways, detail string) *SourceError {
	return &SourceError{Source: "nowhere", Kind: objstore.ErrDenied, Detail: detail, Next: "give them by one of " + ways}
}

// Refused is the failure of a source that answered no. code may be empty.
func Refused(source string, status int, code string) *SourceError {
	e := &SourceError{Source: source, Kind: objstore.ErrDenied, Detail: "it refused", Next: "check the role, its trust and the token"}
	if status >= 500 || status == 429 || code == "Throttling" || code == "SlowDown" || code == "IDPCommunicationError" {
		e.Kind, e.Next = objstore.ErrUnavailable, "try again later"
	}
	if status > 0 {
		e.Detail += fmt.Sprintf(" with %d", status)
	}
	if word(code) {
		e.Detail += " " + code
	}
	return e
}

// Unreached is the failure of a source from which no answer came. Only what is known to
// hold no secret is told of err.
func Unreached(source string, err error) *SourceError {
	e := &SourceError{Source: source, Kind: objstore.ErrUnavailable, Detail: "no usable answer", Next: "check that it is reachable from here"}
	var (
		op   *net.OpError
		path *os.PathError
		bad  x509.UnknownAuthorityError
		name x509.HostnameError
	)
	switch {
	case errors.As(err, &path):
		e.Kind, e.Detail, e.Next = objstore.ErrDenied, path.Error(), "check the file and who may read it"
	case errors.As(err, &bad), errors.As(err, &name):
		e.Kind, e.Detail, e.Next = objstore.ErrDenied, "its certificate is not trusted", "name its authority with AWS_CA_BUNDLE=FILE"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		e.Detail = "no answer in time"
	case errors.As(err, &op):
		e.Detail = op.Error()
	}
	return e
}

// word tells a code from a text: codes are shown, texts are not.
func word(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.'
	}) < 0
}
