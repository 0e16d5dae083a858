//go:build unix

package s3test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore"
)

// storeVariable holds the endpoint that a re-run of the test binary opens. The system's
// certificates are read once a process, so SSL_CERT_FILE needs one of its own.
const storeVariable = "STRANDLINE_TEST_TLS_STORE"

// Trust goes through what can be wrong between a driver and a store's TLS, and the ways
// to trust its certificate, on both real servers. The test that calls it is called name.
func Trust(t *testing.T, open Opener, name string) {
	if to := os.Getenv(storeVariable); to != "" {
		endpoint, bucket, _ := strings.Cut(to, "/")
		d, err := open(Target{Endpoint: endpoint, TLS: true, Bucket: bucket, AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY")})
		if err != nil {
			t.Fatal(err)
		}
		check(t, d.Close(), nil)
		return
	}
	for _, kind := range []realstore.Kind{realstore.KindMinio, realstore.KindVersitygw} {
		t.Run(string(kind), func(t *testing.T) { trust(t, open, kind, name) })
	}
	t.Run("plain server", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		defer server.Close()
		_, err := open(Target{Endpoint: strings.TrimPrefix(server.URL, "http://"), TLS: true, Bucket: bucket, AccessKey: accessKey, SecretKey: secretKey})
		says(t, err, objstore.ErrInvalid, "does not speak TLS")
	})
}

func trust(t *testing.T, open Opener, kind realstore.Kind, name string) {
	s := realstore.Own(t, kind, true)
	to := target(t, s, "")
	ca := to.CAFile
	mustOpen(t, open, to) // ca=

	to.CAFile = ""
	_, err := open(to)
	says(t, err, objstore.ErrDenied, "ca=FILE")

	named := to
	named.CAFile = ca
	named.Endpoint = strings.Replace(to.Endpoint, "127.0.0.1", "localhost", 1) // the certificate names 127.0.0.1 alone
	_, err = open(named)
	says(t, err, objstore.ErrDenied, "other names")

	plain := to
	plain.TLS = false
	_, err = open(plain)
	// MinIO says so, if its words arrive before it hangs up; versitygw just hangs up.
	kindOfPlain := objstore.ErrUnavailable
	if errors.Is(err, objstore.ErrInvalid) && kind == realstore.KindMinio {
		kindOfPlain = objstore.ErrInvalid
	}
	says(t, err, kindOfPlain, "https endpoint")

	missing := to
	missing.CAFile = "/no/such/file"
	_, err = open(missing)
	says(t, err, objstore.ErrInvalid, "/no/such/file")

	t.Setenv("AWS_CA_BUNDLE", ca)
	mustOpen(t, open, to)
	t.Setenv("AWS_CA_BUNDLE", "")

	cmd := exec.CommandContext(context.Background(), os.Args[0], "-test.run=^"+name+"$")
	cmd.Env = append(os.Environ(), storeVariable+"="+to.Endpoint+"/"+to.Bucket, "SSL_CERT_FILE="+ca,
		"AWS_ACCESS_KEY_ID="+to.AccessKey, "AWS_SECRET_ACCESS_KEY="+to.SecretKey)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("SSL_CERT_FILE: %v: %s", err, out)
	}
}

// says holds an error to its kind and to naming the next step.
func says(t *testing.T, err, kind error, text string) {
	t.Helper()
	if err == nil {
		t.Errorf("opened, want %v", kind)
		return
	}
	check(t, err, kind)
	if !strings.Contains(err.Error(), text) {
		t.Errorf("%v: does not say %q", err, text)
	}
}
