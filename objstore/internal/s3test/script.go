//go:build unix

package s3test

import (
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// The keys that no error, name or log may show.
const (
	accessKey = "AKIDSCRIPTEDSERVER"
	secretKey = "scripted-secret-key-of-the-test"
	bucket    = "bucket-of-script"
)

// Target is a store to open.
type Target struct {
	Endpoint             string // host:port
	TLS                  bool
	CAFile               string
	Bucket, Prefix       string
	AccessKey, SecretKey string
}

// Opener opens a driver on a target.
type Opener func(Target) (objstore.Driver, error)

// script is a server whose answers the test writes.
type script struct {
	server *httptest.Server
	driver objstore.Driver

	mu       sync.Mutex
	requests []*http.Request
}

// newScript serves answer for every request after the one of Open.
func newScript(t *testing.T, open Opener, answer http.HandlerFunc) *script {
	t.Helper()
	return startScript(t, open, answer, false)
}

func startScript(t *testing.T, open Opener, answer http.HandlerFunc, secure bool) *script {
	t.Helper()
	s := &script{}
	opened := false
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		first := !opened
		opened = true
		if !first {
			s.requests = append(s.requests, r)
		}
		s.mu.Unlock()
		if first {
			xmlAnswer(w, http.StatusOK, "<ListBucketResult><Name>"+bucket+"</Name></ListBucketResult>")
			return
		}
		answer(w, r)
	}))
	to := Target{TLS: secure, Bucket: bucket, Prefix: "pre/fix", AccessKey: accessKey, SecretKey: secretKey}
	if secure {
		s.server.StartTLS()
		to.CAFile = certificateOf(t, s.server)
	} else {
		s.server.Start()
	}
	t.Cleanup(s.server.Close)
	to.Endpoint = s.server.Listener.Addr().String()
	driver, err := open(to)
	if err != nil {
		t.Fatal(err)
	}
	s.driver = driver
	t.Cleanup(func() {
		if err := driver.Close(); err != nil {
			t.Error(err)
		}
	})
	discreet(t, driver.Name())
	return s
}

// certificateOf writes a server's certificate where a client may be told to trust it.
func certificateOf(t *testing.T, s *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func (s *script) request(t *testing.T, i int) *http.Request {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.requests) {
		t.Fatalf("request %d of %d", i, len(s.requests))
	}
	return s.requests[i]
}

// check holds an error to one kind, and to saying no credentials.
func check(t *testing.T, err, want error) {
	t.Helper()
	if want == nil {
		if err != nil {
			t.Errorf("got %v", err)
		}
		return
	}
	if !errors.Is(err, want) {
		t.Errorf("got %v, want kind %q", err, want)
		return
	}
	kinds := 0
	for _, kind := range allKinds {
		if errors.Is(err, kind) {
			kinds++
		}
	}
	if kinds != 1 {
		t.Errorf("%d kinds in %v", kinds, err)
	}
	discreet(t, err.Error())
}

var allKinds = []error{
	objstore.ErrNotFound, objstore.ErrExists, objstore.ErrPrecondition, objstore.ErrConflict, objstore.ErrUnavailable,
	objstore.ErrAmbiguous, objstore.ErrDenied, objstore.ErrRange, objstore.ErrShort, objstore.ErrInvalid,
	objstore.ErrUnsupported, objstore.ErrCorrupt, objstore.ErrNoSpace,
}

func discreet(t *testing.T, text string) {
	t.Helper()
	for _, secret := range []string{accessKey, secretKey, "Signature=", "X-Amz-Credential"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q shows %q", text, secret)
		}
	}
}

// Answers.

func xmlAnswer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+body)
}

func refuse(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodHead {
			w.WriteHeader(status)
			return
		}
		xmlAnswer(w, status, "<Error><Code>"+code+"</Code><Message>The key "+accessKey+" is refused.</Message><RequestId>R1</RequestId></Error>")
	}
}

// plain answers with a status and a body that is no error document.
func plain(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, body)
		}
	}
}

const loginPage = "<!DOCTYPE html><html><body>Please log in</body></html>"

// lost takes the request whole and closes the connection without an answer.
func lost(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	panic(http.ErrAbortHandler)
}

// silent takes the request and never answers.
func silent(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}
