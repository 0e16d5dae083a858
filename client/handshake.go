package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// HandshakeError is a TLS handshake that the server ended: mostly for the certificate that it
// was shown, or was not. Of the request nothing was carried out: a server reads none before its
// handshake is over, although in TLS 1.3 the client may have sent one by then.
type HandshakeError struct {
	Alert tls.AlertError
	Err   error
}

func (e *HandshakeError) Error() string {
	return fmt.Sprintf("the server ended the TLS handshake: %v", e.Err)
}

// Unwrap is the transport's error.
func (e *HandshakeError) Unwrap() error { return e.Err }

// NoCertificate says that the server wants a certificate and got none. (In TLS 1.2 that is a
// handshake failure as others are.)
func (e *HandshakeError) NoCertificate() bool { return e.Alert == alertCertificateRequired }

// BadCertificate says that the server does not take the certificate that it was shown.
func (e *HandshakeError) BadCertificate() bool {
	return e.Alert >= alertBadCertificate && e.Alert <= alertAccessDenied
}

// The alerts of RFC 8446 §6.2 that name a certificate.
const (
	alertBadCertificate      tls.AlertError = 42
	alertAccessDenied        tls.AlertError = 49
	alertCertificateRequired tls.AlertError = 116
)

// handshakeAlerts are those that come during a handshake only: handshake_failure, the
// certificates', protocol_version, insufficient_security, inappropriate_fallback,
// missing_extension, unrecognized_name, certificate_required, no_application_protocol. Any other
// may end a connection later, too, with the request under way.
var handshakeAlerts = []tls.AlertError{40, 42, 43, 44, 45, 46, 48, 49, 70, 71, 86, 109, 112, 116, 120}

// handshakeError gives such an end its kind; nil: err is none. crypto/tls does not export the
// type of an alert that came over TCP, but its text.
func handshakeError(err error) error {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return nil
	}
	for _, a := range handshakeAlerts {
		if op.Err.Error() == a.Error() {
			return &HandshakeError{Alert: a, Err: err}
		}
	}
	return nil
}
