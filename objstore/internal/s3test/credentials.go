//go:build unix

package s3test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/internal/s3wire"
)

// Credentials goes through the ways to credentials that both drivers take, and what
// happens when one fails or its credentials end. open makes a driver of a target without
// keys.
func Credentials(t *testing.T, open Opener) {
	t.Run("Ways", func(t *testing.T) { everyWay(t, open) })
	t.Run("None", func(t *testing.T) { none(t, open) })
	t.Run("Failures", func(t *testing.T) { failures(t, open) })
	t.Run("Expired", func(t *testing.T) { expire(t, open) })
	t.Run("ShortLived", func(t *testing.T) { shortLived(t, open) })
	t.Run("ExpiredForGood", func(t *testing.T) { expiredForGood(t, open) })
}

// everyWay leads to a real MinIO, which checks access key, session token and signature.
func everyWay(t *testing.T, open Opener) {
	server := realstore.Minio(t)
	to := target(t, server, "tier")
	temporary := assumed(t, server.URL, server.AccessKey, server.SecretKey)
	to.AccessKey, to.SecretKey = "", ""
	for i, way := range setUps() {
		t.Run(way.name, func(t *testing.T) {
			Lonely(t)
			s := newSources(t, func() issued { return temporary })
			way.set(t, s, temporary)
			d := mustOpen(t, open, to)
			body := []byte(way.name)
			_, err := d.Put(context.Background(), fmt.Sprintf("k%d", i), bytes.NewReader(body), int64(len(body)), objstore.PutOptions{IfNoneMatch: true})
			check(t, err, nil)
			hides(t, d.Name(), temporary)
			if len(s.strange) > 0 {
				t.Errorf("odd questions: %v", s.strange)
			}
			if remote := i > 3; remote != (s.count() == 1) {
				t.Errorf("%d credentials were handed out", s.count())
			}
		})
	}
}

// none of the ways: said at once and in words, also where the metadata address leads
// nowhere.
func none(t *testing.T, open Opener) {
	Lonely(t)
	to := Target{Endpoint: "127.0.0.1:1", Bucket: bucket}
	_, err := open(to)
	check(t, err, objstore.ErrDenied)
	for _, says := range []string{"AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_PROFILE", "role"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%v: does not name %s", err, says)
		}
	}
	// A service that takes connections and says nothing.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://"+l.Addr().String())
	began := time.Now()
	_, err = open(to)
	check(t, err, objstore.ErrUnavailable)
	// Far from both bounds, for busy machines: other sources get ten times as long.
	if took := time.Since(began); took > s3wire.SourceTimeout/2 {
		t.Errorf("a silent metadata service was given up only after %v: %v", took, err)
	}
}

// failures of a way that is set up are told as such, and lead to no other identity.
func failures(t *testing.T, open Opener) {
	to := Target{Endpoint: "127.0.0.1:1", Bucket: bucket}
	given := issued{key: "AKIDHANDED", secret: "handed-secret-key", token: "handed-session-token", ends: time.Now().Add(time.Hour)}
	all := given.key + " " + given.secret + " " + given.token + " " + identityToken + " " + containerToken + " " + metadataToken
	answers := map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"refused": {func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				plain(http.StatusForbidden, "application/json", `{"code":"AccessDenied","message":"not you: `+all+`"}`)(w, r)
				return
			}
			xmlAnswer(w, http.StatusForbidden, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not you: `+all+`</Message></Error><RequestId>R</RequestId></ErrorResponse>`)
		}, objstore.ErrDenied},
		"broken": {plain(http.StatusServiceUnavailable, "text/plain", all), objstore.ErrUnavailable},
		"odd":    {plain(http.StatusOK, "text/plain", `{"`+all), objstore.ErrUnavailable},
	}
	for _, way := range setUps()[4:] {
		for name, c := range answers {
			t.Run(way.name+"/"+name, func(t *testing.T) {
				Lonely(t)
				t.Setenv("AWS_MAX_ATTEMPTS", "1")
				s := newSources(t, func() issued { return given })
				s.refuse = c.answer
				way.set(t, s, given)
				_, err := open(to)
				check(t, err, c.want)
				hides(t, err.Error(), given)
				t.Log(err)
			})
		}
	}
	t.Run("no such profile", func(t *testing.T) {
		Lonely(t)
		t.Setenv("AWS_PROFILE", "nobody")
		_, err := open(to)
		check(t, err, objstore.ErrDenied)
	})
	t.Run("no such token file", func(t *testing.T) {
		Lonely(t)
		newSources(t, nil).identify(t)
		t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/no/such/file")
		_, err := open(to)
		check(t, err, objstore.ErrDenied)
		if !strings.Contains(err.Error(), "/no/such/file") {
			t.Errorf("%v: which file?", err)
		}
	})
	t.Run("damaged file", func(t *testing.T) {
		Lonely(t)
		t.Setenv("AWS_PROFILE", "other")
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", written(t, "[other]\naws_secret_access_key "+given.secret+"\n[other\n"))
		_, err := open(to)
		if err == nil {
			t.Fatal("opened")
		}
		hides(t, err.Error(), given)
	})
}

func hides(t *testing.T, text string, c issued) {
	t.Helper()
	for _, secret := range []string{c.key, c.secret, c.token, identityToken, containerToken, metadataToken} {
		if secret != "" && strings.Contains(text, secret) {
			t.Errorf("%q shows %q", text, secret)
		}
	}
}

// ending is a store that takes each signer for a number of requests and then says that its
// token is expired.
type ending struct {
	lasts int
	text  string // of the refusal

	mu      sync.Mutex
	served  map[string]int // by session token
	refused int
}

func (e *ending) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	token := r.Header.Get("X-Amz-Security-Token")
	e.mu.Lock()
	e.served[token]++
	over := e.served[token] > e.lasts || !strings.Contains(r.Header.Get("Authorization"), "Credential="+strings.Replace(token, "token", "AKID", 1)+"/")
	if over {
		e.refused++
	}
	e.mu.Unlock()
	switch q := r.URL.Query(); {
	case over && r.Method == http.MethodHead:
		w.WriteHeader(http.StatusBadRequest) // as AWS does: no body, no code
	case over:
		xmlAnswer(w, http.StatusBadRequest, "<Error><Code>ExpiredToken</Code><Message>"+e.text+" "+token+"</Message></Error>")
	case r.Method == http.MethodGet:
		xmlAnswer(w, http.StatusOK, "<ListBucketResult><Name>"+bucket+"</Name></ListBucketResult>")
	case r.Method == http.MethodPost && q.Has("uploads"):
		xmlAnswer(w, http.StatusOK, "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>U1</UploadId></InitiateMultipartUploadResult>")
	case r.Method == http.MethodPost:
		xmlAnswer(w, http.StatusOK, `<CompleteMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><ETag>"done-2"</ETag></CompleteMultipartUploadResult>`)
	default:
		w.Header().Set("ETag", `"e1"`)
	}
}

// numbered hands out other credentials each time, with the same end.
func numbered(ends time.Time) func() issued {
	n := 0
	return func() issued {
		n++
		return issued{key: fmt.Sprintf("AKID-%d", n), secret: fmt.Sprintf("secret-key-%d", n), token: fmt.Sprintf("token-%d", n), ends: ends}
	}
}

// upload is six parts through the Store, which must pass whatever becomes of the
// credentials; then a HEAD.
func upload(t *testing.T, open Opener, e *ending, s *sources) {
	t.Helper()
	Lonely(t)
	s.identify(t)
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	d := mustOpen(t, open, Target{Endpoint: strings.TrimPrefix(server.URL, "http://"), Bucket: bucket})
	store, err := objstore.New(d, objstore.Config{PartSize: 5 << 20, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
	if err != nil {
		t.Fatal(err)
	}
	w := store.NewWriter(context.Background(), "k", objstore.UploadOptions{})
	if _, err := w.Write(make([]byte, 30<<20)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if len(s.strange) > 0 {
		t.Errorf("odd questions: %v", s.strange)
	}
}

// expire: credentials that the store takes for three requests each, though they were said
// to last: every refusal leads to newer ones, and the upload does not notice.
func expire(t *testing.T, open Opener) {
	e := &ending{lasts: 3, served: map[string]int{}}
	s := newSources(t, numbered(time.Now().Add(time.Hour)))
	upload(t, open, e, s)
	if e.refused == 0 || s.count() < 3 {
		t.Errorf("%d refusals, %d credentials: the test did not come to what it tests", e.refused, s.count())
	}
}

// shortLived: credentials that are over when they come are fetched anew for each request,
// without waiting for a refusal.
func shortLived(t *testing.T, open Opener) {
	e := &ending{lasts: 1000, served: map[string]int{}}
	s := newSources(t, numbered(time.Now().Add(-time.Minute)))
	upload(t, open, e, s)
	if e.refused != 0 || s.count() < 3 {
		t.Errorf("%d refusals, %d credentials", e.refused, s.count())
	}
}

// expiredForGood: where the source has no newer ones, that is a denial, said once.
func expiredForGood(t *testing.T, open Opener) {
	Lonely(t)
	e := &ending{lasts: 1, served: map[string]int{}, text: "token"}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	one := issued{key: "AKID-1", secret: "secret-key-1", token: "token-1"}
	setUps()[0].set(t, nil, one)
	d := mustOpen(t, open, Target{Endpoint: strings.TrimPrefix(server.URL, "http://"), Bucket: bucket})
	for name, err := range map[string]error{"put": storeSays(context.Background(), t, d, "k", nil), "head": func() error {
		_, err := mustStore(t, d).Head(context.Background(), "k")
		return err
	}()} {
		check(t, err, objstore.ErrDenied)
		hides(t, err.Error(), one)
		if !strings.Contains(err.Error(), "expired") {
			t.Errorf("%s: %v: does not say why", name, err)
		}
	}
	if e.refused != 3 { // a put, a HEAD and the GET that explains it
		t.Errorf("%d requests were made in vain", e.refused)
	}
}
