package s3wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/strandline/strandline/objstore"
)

// caBundle names a file of certificates to trust, for this and the AWS tools. SSL_CERT_FILE
// is Go's own and replaces the system's file.
const caBundle = "AWS_CA_BUNDLE"

// Roots is the system's pool with the certificates of caFile, or else of the file that
// AWS_CA_BUNDLE names, added. nil stands for the system's alone.
func Roots(caFile string) (*x509.CertPool, error) {
	from := caFile
	if caFile == "" {
		if caFile = os.Getenv(caBundle); caFile == "" {
			return nil, nil
		}
		from = caBundle + "=" + caFile
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates to trust: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // no system pool on this platform: the file alone counts
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in PEM form in it", from)
	}
	return pool, nil
}

// judgeHandshake is for a request that found no connection because of TLS. A nil kind: TLS
// is not why.
func judgeHandshake(err error) (hint string, kind error) {
	var (
		cert    *tls.CertificateVerificationError
		auth    x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		rec     tls.RecordHeaderError
		alert   tls.AlertError
	)
	switch {
	case errors.As(err, &name):
		return "the store's certificate is for other names: reach it by one of them, or give it a certificate for this one", objstore.ErrDenied
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the store's certificate is out of date, or this machine's clock is wrong", objstore.ErrDenied
	case errors.As(err, &cert), errors.As(err, &auth):
		return "the store's certificate is not trusted: name its authority with ca=FILE or AWS_CA_BUNDLE", objstore.ErrDenied
	case errors.As(err, &rec), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the store does not speak TLS here: use tls=false or an http endpoint", objstore.ErrInvalid
	case errors.As(err, &alert):
		return "the store broke the TLS handshake off: does it ask for a client certificate, or an older TLS than 1.2?", objstore.ErrDenied
	}
	return "", nil
}

// plainHint is what a plain request may have met that was hung up on.
const plainHint = "if the store speaks TLS here, leave tls=false away or use an https endpoint"

// hungUp tells a connection that was closed in place of an answer.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// speaksTLS tells the answer of a TLS server to a plain request.
func speaksTLS(body []byte) bool {
	return strings.Contains(string(body), "HTTP request to an HTTPS server")
}
