package access

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serve guards one route with Read, behind what sets the request's id.
func (r *rig) serve(t *testing.T, scope string, next http.HandlerFunc) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	guarded := r.Guard(scope, next)
	mux.HandleFunc("/rows/{stream}", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("X-Request-Id", "id-of-the-test")
		guarded.ServeHTTP(w, req)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func ask(t *testing.T, s *httptest.Server, method, token string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/rows/secret-stream?token=in-the-query", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func TestGuard(t *testing.T) {
	reader, one := entryOf(t, "the-reader", "read")
	writer, two := entryOf(t, "the-writer", "append")
	r := open(t, one.Line(), two.Line())
	served := 0
	s := r.serve(t, Read, func(w http.ResponseWriter, req *http.Request) {
		served++
		_, _ = io.WriteString(w, Caller(req.Context()))
	})
	stranger := NewToken()
	for name, c := range map[string]struct {
		token           string
		status          int
		code, challenge string
	}{
		"none":     {"", 401, "unauthenticated", `Bearer realm="strandline"`},
		"odd":      {"x", 401, "unauthenticated", `error="invalid_request"`},
		"unknown":  {stranger, 401, "unauthenticated", `error="invalid_token"`},
		"no scope": {writer, 403, "forbidden", `error="insufficient_scope", scope="read"`},
	} {
		resp := ask(t, s, http.MethodGet, c.token)
		var p problem
		if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != c.status || p.Status != c.status || p.Code != c.code || p.RequestID != "id-of-the-test" {
			t.Errorf("%s: %d %+v", name, resp.StatusCode, p)
		}
		if got := resp.Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, realm) || !strings.Contains(got, c.challenge) {
			t.Errorf("%s: WWW-Authenticate %q", name, got)
		}
		if got := resp.Header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s: Content-Type %q", name, got)
		}
	}
	if served != 0 {
		t.Errorf("%d refused requests were served", served)
	}
	resp := ask(t, s, http.MethodPost, reader)
	if name, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 || string(name) != "the-reader" || served != 1 {
		t.Errorf("the right token: %d, %q", resp.StatusCode, name)
	}
	log := r.log.String()
	for _, secret := range []string{reader, writer, stranger, one.Hash.String(), "in-the-query", "secret-stream"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log shows %q:\n%s", secret, log)
		}
	}
	for _, want := range []string{"id-of-the-test", "the-writer", `reason="unknown token"`, "/rows/{stream}", "127.0.0.1:"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
	if got, want := r.Stats(), (Stats{Tokens: 2, Granted: 1, Unauthorized: 3, Forbidden: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestRefusalsAreFew: a thousand guesses are not a thousand log lines, and are counted.
func TestRefusalsAreFew(t *testing.T) {
	_, one := entryOf(t, "one", "read")
	r := open(t, one.Line())
	h := r.Guard(Read, http.NotFoundHandler())
	for range 1000 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
	if n := strings.Count(r.log.String(), "refused"); n < refusalsAtOnce || n > 2*refusalsAtOnce {
		t.Errorf("%d lines", n)
	}
	if n := r.unsaid.Load(); n < 900 {
		t.Errorf("%d are counted as not logged", n)
	}
	r.refusals.SetBurst(1000)
	r.refusals.SetLimit(1000)
	r.refusals.AllowN(time.Now().Add(time.Second), 0) // as if a second went by
	r.log.Reset()
	for range 20 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
	if log := r.log.String(); !strings.Contains(log, "not_logged_before=9") {
		t.Errorf("the number that was not logged is not told:\n%s", log)
	}
}

// TestRevokedFollowEnds: an answer that goes on for ever ends when its token goes, and not
// when another's does.
func TestRevokedFollowEnds(t *testing.T) {
	reader, one := entryOf(t, "one", "read")
	other, two := entryOf(t, "two", "read")
	r := open(t, one.Line(), two.Line())
	ended := make(chan error, 2)
	s := r.serve(t, Read, func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
		if Caller(req.Context()) == "one" {
			ended <- context.Cause(req.Context())
		}
		_, _ = io.WriteString(w, "last\n")
	})
	follow := func(token string) *bufio.Reader {
		t.Helper()
		lines := bufio.NewReader(ask(t, s, http.MethodGet, token).Body)
		if line, err := lines.ReadString('\n'); line != "first\n" {
			t.Fatalf("%q, %v", line, err)
		}
		return lines
	}
	mine, theirs := follow(reader), follow(other)
	changed := one
	changed.Scopes = []string{Append} // the token stays, its scope goes
	start := time.Now()
	r.write(t, changed.Line(), two.Line())
	select {
	case cause := <-ended:
		if !errors.Is(cause, ErrRevoked) {
			t.Errorf("it ended with %v", cause)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a revoked follow goes on")
	}
	t.Logf("it ended after %v", time.Since(start))
	if line, err := mine.ReadString('\n'); line != "last\n" {
		t.Errorf("no last word: %q, %v", line, err)
	}
	if s := r.Stats(); s.Revoked != 1 {
		t.Errorf("%+v", s)
	}
	r.mu.Lock()
	left := len(r.sessions)
	r.mu.Unlock()
	if left != 1 {
		t.Errorf("%d answers under way, want the other one", left)
	}
	r.write(t, changed.Line())
	if line, err := theirs.ReadString('\n'); line != "last\n" {
		t.Errorf("no last word: %q, %v", line, err)
	}
}

// TestRevokedAndNotReading: a client that reads nothing cannot keep an answer open.
func TestRevokedAndNotReading(t *testing.T) {
	reader, one := entryOf(t, "one", "read")
	_, two := entryOf(t, "two", "read")
	r := open(t, one.Line())
	full, done := make(chan struct{}), make(chan error, 1)
	s := r.serve(t, Read, func(w http.ResponseWriter, _ *http.Request) {
		b := make([]byte, 1<<20)
		for n := 0; ; n++ {
			if n == 8 {
				close(full)
			}
			if _, err := w.Write(b); err != nil {
				done <- err
				return
			}
		}
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET /rows/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+reader+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, conn, 10<<20); err != nil { // then it stops reading
		t.Fatal(err)
	}
	<-full
	r.write(t, two.Line())
	select {
	case err := <-done:
		if !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "timeout") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the answer stays open")
	}
}

// TestRevokedInBetween: a file that is swapped between a decision and its session.
func TestRevokedInBetween(t *testing.T) {
	_, one := entryOf(t, "one", "read")
	_, two := entryOf(t, "two", "read")
	r := open(t, one.Line())
	ended := false
	r.set.Store(&[]Entry{two})
	r.begin(&session{hash: one.Hash, scope: Read, end: func() { ended = true }})
	if !ended || len(r.sessions) != 0 {
		t.Error("a session of a token that is gone goes on")
	}
}

// TestAppendIsLetFinish: only reads are ended.
func TestAppendIsLetFinish(t *testing.T) {
	writer, one := entryOf(t, "one", "append")
	_, two := entryOf(t, "two", "append")
	r := open(t, one.Line())
	s := r.serve(t, Append, func(w http.ResponseWriter, req *http.Request) {
		r.write(t, two.Line())
		r.log.Until(t, "read again")
		if req.Context().Err() != nil {
			t.Error("an append is cut")
		}
	})
	if resp := ask(t, s, http.MethodPost, writer); resp.StatusCode != 200 {
		t.Errorf("%d", resp.StatusCode)
	}
	if resp := ask(t, s, http.MethodPost, writer); resp.StatusCode != 401 {
		t.Errorf("after it: %d", resp.StatusCode)
	}
}
