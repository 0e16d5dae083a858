//go:build unix

package s3test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/strandline/strandline/objstore"
)

// load: what a store says of its load reaches the Store, from every call.
func load(t *testing.T, open Opener) {
	after := func(text string, answer http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if text != "" {
				w.Header().Set("Retry-After", text)
			}
			answer(w, r)
		}
	}
	for name, c := range map[string]struct {
		answer    http.HandlerFunc
		ask       time.Duration
		throttled bool
	}{
		"SlowDown":                {refuse(503, "SlowDown"), 0, true},
		"SlowDown with a time":    {after("7", refuse(503, "SlowDown")), 7 * time.Second, true},
		"SlowDown with nonsense":  {after("soon", refuse(503, "SlowDown")), 0, true},
		"429 with a time":         {after("3", plain(429, "text/plain", "")), 3 * time.Second, true},
		"503 in its own words":    {refuse(503, "Bewildered"), 0, true},
		"a proxy's 503":           {plain(503, "text/html", loginPage), 0, false},
		"a proxy's 503 in a time": {after("5", plain(503, "text/html", loginPage)), 5 * time.Second, false},
		"denied":                  {after("", refuse(403, "AccessDenied")), 0, false},
		"500":                     {refuse(500, "InternalError"), 0, false},
	} {
		for _, call := range calls() {
			t.Run(name+"/"+call.name, func(t *testing.T) {
				t.Parallel()
				s := newScript(t, open, c.answer)
				err := call.do(context.Background(), s.driver)
				var e *objstore.Error
				if !errors.As(err, &e) {
					t.Fatalf("got %v", err)
				}
				// A HEAD's 503 has no words to be the store's own.
				throttled := c.throttled || call.name == "head" && strings.Contains(name, "proxy")
				if e.RetryAfter != c.ask || e.Throttled != throttled {
					t.Errorf("asks for %v, throttled %v; want %v, %v: %v", e.RetryAfter, e.Throttled, c.ask, throttled, err)
				}
			})
		}
	}
	t.Run("inside a 200", func(t *testing.T) {
		s := newScript(t, open, func(w http.ResponseWriter, _ *http.Request) {
			xmlAnswer(w, 200, "<DeleteResult><Error><Key>pre/fix/a/key</Key><Code>SlowDown</Code></Error></DeleteResult>")
		})
		var e *objstore.Error
		if err := deleteOne(context.Background(), s.driver); !errors.As(err, &e) || !e.Throttled || !errors.Is(err, objstore.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}

// K40: a clock that is off is told as that by every call, a HEAD included, whose 403 has
// no body; and it is never "not found".
func K40(t *testing.T, open Opener) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(-20*time.Minute).UTC().Format(http.TimeFormat))
		refuse(http.StatusForbidden, "RequestTimeTooSkewed")(w, r)
	}
	for _, c := range calls() {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, open, answer)
			err := c.do(context.Background(), s.driver)
			check(t, err, objstore.ErrDenied)
			if err == nil || !strings.Contains(err.Error(), "set the clock") {
				t.Errorf("%v does not say what to do", err)
			}
		})
	}
	// A 403 from a store whose clock is ours is about the credentials.
	s := newScript(t, open, refuse(http.StatusForbidden, "AccessDenied"))
	_, err := s.driver.Head(context.Background(), key)
	check(t, err, objstore.ErrDenied)
	if err == nil || strings.Contains(err.Error(), "clock") {
		t.Errorf("%v speaks of the clock", err)
	}
}

// unsigned: over HTTP and over TLS a body goes with its CRC-32C, and with no SHA-256 in
// the signature, which would triple the client's CPU.
func unsigned(t *testing.T, open Opener) {
	for name, secure := range map[string]bool{"HTTP": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			for _, c := range calls() {
				if c.name != "put" && c.name != "upload part" {
					continue
				}
				s := startScript(t, open, func(w http.ResponseWriter, r *http.Request) {
					refuse(400, "InvalidArgument")(w, r)
				}, secure)
				check(t, c.do(context.Background(), s.driver), objstore.ErrInvalid)
				r := s.request(t, 0)
				if secure != (r.TLS != nil) {
					t.Fatal("not the way that was meant")
				}
				for header, want := range map[string]string{
					"X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD", "X-Amz-Checksum-Crc32c": "mnG7TA==", "X-Amz-Trailer": "", "Content-Encoding": "",
				} {
					if got := r.Header.Get(header); got != want {
						t.Errorf("%s: %s is %q, want %q", c.name, header, got, want)
					}
				}
			}
		})
	}
}
