package tlsfiles

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
)

// Client names the files of a caller.
type Client struct {
	// CA holds the authorities that servers are believed by; empty: the system's.
	CA string
	// Cert and Key are shown to servers that ask; empty: nothing is.
	Cert, Key string
}

// Validate reports every fault at once.
func (c Client) Validate() error {
	if (c.Cert == "") != (c.Key == "") {
		return errors.New("a client certificate and its key come together")
	}
	return nil
}

// TLS reads the files. The certificate is read again for each handshake that asks for it,
// if it changed; the authorities are not: have both the old and the new one in the file
// while servers change over, and start anew.
func (c Client) TLS() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		text, err := readFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
		if cfg.RootCAs, err = authorities(c.CA, text); err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
	}
	if c.Cert == "" {
		return cfg, nil
	}
	s := &shown{client: c}
	if _, err := s.certificate(nil); err != nil {
		return nil, err
	}
	cfg.GetClientCertificate = s.certificate
	return cfg, nil
}

// shown is the client's certificate as its files are.
type shown struct {
	client Client

	mu   sync.Mutex
	seen sums
	pair *tls.Certificate
}

// certificate keeps the old pair while the files do not fit together: half a renewal.
func (s *shown) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	texts, seen, err := readAll(s.client.Cert, s.client.Key)
	if s.pair != nil && (err != nil || seen == s.seen) {
		return s.pair, nil
	}
	if err == nil {
		var p *tls.Certificate
		if p, err = pair(s.client.Cert, s.client.Key, texts[0], texts[1]); err == nil {
			s.pair, s.seen = p, seen
			return p, nil
		}
	}
	if s.pair != nil {
		return s.pair, nil
	}
	return nil, fmt.Errorf("TLS: %w", err)
}
