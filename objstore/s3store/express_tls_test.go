//go:build unix

package s3store

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3express"
)

// TestExpressByName opens a bucket by its URL alone, as on AWS: the SDK makes the zonal
// host name of it, over TLS.
func TestExpressByName(t *testing.T) {
	s := newExpress(s3express.Options{})
	hs := httptest.NewUnstartedServer(s)
	cert, caFile := certificate(t, s.Host())
	hs.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	hs.StartTLS()
	t.Cleanup(hs.Close)
	url := "s3://" + expressBucket + "/tier?region=" + expressRegion
	d := dialExpress(t, hs.Listener.Addr().String(), url, func(c *Config) { c.CAFile = caFile })
	if _, err := d.Put(t.Context(), "k", strings.NewReader("body"), 4, objstore.PutOptions{IfNoneMatch: true}); err != nil {
		t.Fatal(err)
	}
	info, err := d.Head(t.Context(), "k")
	if err != nil || info.Size != 4 {
		t.Errorf("%+v %v", info, err)
	}
	if d.Name() != url {
		t.Errorf("named %s", d.Name())
	}
}

// certificate is one for a host, and the file that makes it trusted.
func certificate(t *testing.T, host string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}
