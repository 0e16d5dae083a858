package tlsfiles

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/strandline/strandline/internal/filewatch"
)

// maxFile holds any chain and any bundle of authorities.
const maxFile = 4 << 20

// sums tell whether files changed.
type sums [3][sha256.Size]byte

// readAll reads files; an empty name is no file.
func readAll(names ...string) (texts [3][]byte, s sums, err error) {
	for i, name := range names {
		if name == "" {
			continue
		}
		text, readErr := readFile(name)
		texts[i], s[i] = text, sha256.Sum256(text)
		err = errors.Join(err, readErr)
	}
	return texts, s, err
}

func readFile(name string) (text []byte, err error) {
	f, err := filewatch.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is larger than 4 MiB", name)
	}
	return text, err
}

// pair is a certificate with its key. Its error names files only: crypto/tls quotes nothing
// of what is in them.
func pair(certName, keyName string, cert, key []byte) (*tls.Certificate, error) {
	p, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", certName, keyName, err)
	}
	// It leaves out what it cannot read: a chain whose end is not written yet would be served
	// without its intermediates, and believed by nobody.
	if whole, n := blocks(cert), bytes.Count(cert, []byte(pemBegin)); whole != n {
		return nil, fmt.Errorf("certificate %s: %d of its %d parts are whole: it is cut or garbled", certName, whole, n)
	}
	return &p, nil
}

// pemBegin begins each block.
const pemBegin = "-----BEGIN "

// blocks counts the whole ones.
func blocks(text []byte) (n int) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		n++
	}
	return n
}

// authorities are the certificates of a bundle. Anything else in it is a fault:
// x509.AppendCertsFromPEM would leave out what it cannot read, and with it those who were
// to be let in.
func authorities(name string, text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	n, rest := 0, text
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		n++
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s: block %d is a %s: give certificates only", name, n, block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: certificate %d: %w", name, n, err)
		}
		pool.AddCert(cert)
	}
	if bytes.Contains(rest, []byte(pemBegin)) {
		return nil, fmt.Errorf("%s: certificate %d is cut or garbled", name, n+1)
	}
	if n == 0 {
		return nil, fmt.Errorf("%s: there is no certificate in it: give them as PEM", name)
	}
	return pool, nil
}

// expires is the end of a certificate.
func expires(p *tls.Certificate) time.Time {
	if p == nil || p.Leaf == nil {
		return time.Time{}
	}
	return p.Leaf.NotAfter
}
