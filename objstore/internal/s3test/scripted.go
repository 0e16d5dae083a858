//go:build unix

package s3test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/strandline/strandline/objstore"
)

// Scripted runs all tests against scripted answers.
func Scripted(t *testing.T, open Opener) {
	t.Run("NoAnswer", func(t *testing.T) { noAnswer(t, open) })
	t.Run("NotAnAnswer", func(t *testing.T) { notAnAnswer(t, open) })
	t.Run("Refusals", func(t *testing.T) { refusals(t, open) })
	t.Run("ErrorIn200", func(t *testing.T) { errorIn200(t, open) })
	t.Run("Conditions", func(t *testing.T) { conditions(t, open) })
	t.Run("EarlyRefusal", func(t *testing.T) { earlyRefusal(t, open) })
	t.Run("Head", func(t *testing.T) { heads(t, open) })
	t.Run("K35", func(t *testing.T) { partlyDeleted(t, open) })
	t.Run("Bodies", func(t *testing.T) { bodies(t, open) })
	t.Run("Listings", func(t *testing.T) { listings(t, open) })
	t.Run("Requests", func(t *testing.T) { requests(t, open) })
	t.Run("Arguments", func(t *testing.T) { arguments(t, open) })
	t.Run("Losses", func(t *testing.T) { losses(t, open) })
	t.Run("Load", func(t *testing.T) { load(t, open) })
	t.Run("Unsigned", func(t *testing.T) { unsigned(t, open) })
}

// noAnswer: an answer that is lost or does not come leaves a mutation open; a request
// that was never sent does not.
func noAnswer(t *testing.T, open Opener) {
	for _, c := range calls() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			s := newScript(t, open, lost)
			check(t, c.do(ctx, s.driver), byOutcome(c))
			if c.mutation && s.count() != 1 {
				t.Errorf("%d requests for one attempt", s.count())
			}

			// The caller gives up once the store has the request.
			waiting, giveUp := context.WithCancel(ctx)
			defer giveUp()
			s = newScript(t, open, func(w http.ResponseWriter, r *http.Request) {
				giveUp()
				silent(w, r)
			})
			check(t, c.do(waiting, s.driver), byOutcome(c))

			ended, cancel := context.WithCancel(ctx)
			cancel()
			sent := s.count()
			check(t, c.do(ended, s.driver), objstore.ErrUnavailable)
			if s.count() != sent {
				t.Error("a request after the context had ended")
			}

			// With the kept connections gone, the next call finds nobody.
			s.server.CloseClientConnections()
			if err := s.driver.Close(); err != nil {
				t.Fatal(err)
			}
			if err := s.server.Listener.Close(); err != nil {
				t.Fatal(err)
			}
			check(t, c.do(ctx, s.driver), objstore.ErrUnavailable)
		})
	}
}

// notAnAnswer: what is no answer of a store is never success, and no verdict either.
func notAnAnswer(t *testing.T, open Opener) {
	answers := map[string]http.HandlerFunc{
		"login page": plain(http.StatusOK, "text/html; charset=utf-8", loginPage),
		"empty":      plain(http.StatusOK, "application/xml", ""),
		"other":      plain(http.StatusOK, "application/xml", "<Surprise/>"),
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(200)
		},
		"html 404":      plain(http.StatusNotFound, "text/html", loginPage),
		"html 503":      plain(http.StatusServiceUnavailable, "text/html", loginPage),
		"bare 500":      plain(http.StatusInternalServerError, "text/plain", "oops"),
		"bare 502":      plain(http.StatusBadGateway, "text/html", loginPage),
		"bare 504":      plain(http.StatusGatewayTimeout, "text/plain", ""),
		"coded 500":     refuse(http.StatusInternalServerError, "InternalError"),
		"unknown coded": refuse(http.StatusBadGateway, "Bewildered"),
	}
	for _, c := range calls() {
		for name, answer := range answers {
			if c.name == "abort" && (name == "empty" || name == "other" || name == "cut") {
				continue // its success has neither document nor ETag to miss
			}
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := newScript(t, open, answer)
				want := byOutcome(c)
				err := c.do(context.Background(), s.driver)
				if name == "cut" && c.name == "get" {
					want = objstore.ErrUnavailable // it lacks an ETag, which is seen first
				}
				check(t, err, want)
			})
		}
	}
}

// refusals: an answer in the store's own words decides the kind, for every call.
func refusals(t *testing.T, open Opener) {
	for _, r := range []struct {
		status int
		code   string
		want   error
		says   string
	}{
		{http.StatusServiceUnavailable, "SlowDown", objstore.ErrUnavailable, "SlowDown"},
		{http.StatusTooManyRequests, "TooManyRequests", objstore.ErrUnavailable, ""},
		{http.StatusBadRequest, "RequestTimeout", objstore.ErrUnavailable, ""},
		{http.StatusBadRequest, "BadDigest", objstore.ErrUnavailable, ""},
		{http.StatusConflict, "ConditionalRequestConflict", objstore.ErrConflict, ""},
		{http.StatusConflict, "OperationAborted", objstore.ErrConflict, ""},
		{http.StatusConflict, "ExistingObjectIsDirectory", objstore.ErrConflict, ""},
		{http.StatusForbidden, "AccessDenied", objstore.ErrDenied, "credentials"},
		{http.StatusForbidden, "SignatureDoesNotMatch", objstore.ErrDenied, "credentials"},
		{http.StatusForbidden, "RequestTimeTooSkewed", objstore.ErrDenied, "set the clock"}, // K40
		{http.StatusNotFound, "XAdminUserNotFound", objstore.ErrDenied, "credentials"},
		{http.StatusBadRequest, "ExpiredToken", objstore.ErrDenied, "credentials"},
		{http.StatusNotFound, "NoSuchBucket", objstore.ErrInvalid, "create the bucket"},
		{http.StatusBadRequest, "InvalidBucketName", objstore.ErrInvalid, "correct the bucket"},
		{http.StatusMovedPermanently, "PermanentRedirect", objstore.ErrInvalid, "region"},
		{http.StatusBadRequest, "AuthorizationHeaderMalformed", objstore.ErrInvalid, "region"},
		{http.StatusBadRequest, "EntityTooSmall", objstore.ErrInvalid, ""},
		{http.StatusNotImplemented, "NotImplemented", objstore.ErrUnsupported, ""},
		{http.StatusInsufficientStorage, "XMinioStorageFull", objstore.ErrNoSpace, "make room"},
	} {
		for _, c := range calls() {
			if c.name == "head" {
				continue // heads tests it: its answers have no code
			}
			t.Run(fmt.Sprintf("%s/%s", r.code, c.name), func(t *testing.T) {
				t.Parallel()
				s := newScript(t, open, refuse(r.status, r.code))
				err := c.do(context.Background(), s.driver)
				check(t, err, r.want)
				if err != nil && !strings.Contains(err.Error(), r.says) {
					t.Errorf("%v does not say %q", err, r.says)
				}
				if s.count() != 1 {
					t.Errorf("%d requests for one attempt", s.count())
				}
			})
		}
	}
}

// errorIn200: AWS may send 200 first and find the error later.
func errorIn200(t *testing.T, open Opener) {
	for code, want := range map[string]error{
		"PreconditionFailed": objstore.ErrExists,
		"InternalError":      objstore.ErrAmbiguous,
		"SlowDown":           objstore.ErrUnavailable,
		"NoSuchUpload":       objstore.ErrNotFound,
		"Bewildered":         objstore.ErrAmbiguous,
	} {
		t.Run(code, func(t *testing.T) {
			for _, c := range calls() {
				if c.name != "complete" && c.name != "copy part" {
					continue
				}
				want := want
				if c.name == "copy part" && code == "PreconditionFailed" {
					want = objstore.ErrPrecondition
				}
				// AWS sends white space while it works.
				s := newScript(t, open, func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(http.StatusOK)
					fmt.Fprintf(w, "\n   \n<Error><Code>%s</Code><Message>later</Message></Error>", code)
				})
				check(t, c.do(context.Background(), s.driver), want)
				if s.count() != 1 {
					t.Errorf("%s: %d requests", c.name, s.count())
				}
			}
		})
	}
}

// partlyDeleted is K35: 3 of 1,000 keys fail inside a 200: 997 are gone and 3 stand.
// A key that the answer does not name is open.
func partlyDeleted(t *testing.T, open Opener) {
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprintf("k/%04d", i)
	}
	codes := map[int]string{17: "AccessDenied", 500: "SlowDown", 999: "InvalidArgument"}
	want := map[int]error{
		17: objstore.ErrDenied, 500: objstore.ErrUnavailable, 999: objstore.ErrUnavailable,
		3: objstore.ErrAmbiguous,
	}
	s := newScript(t, open, func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		b.WriteString("<DeleteResult>")
		for i, k := range keys {
			switch {
			case codes[i] != "":
				fmt.Fprintf(&b, "<Error><Key>pre/fix/%s</Key><Code>%s</Code><Message>no, %s</Message></Error>", k, codes[i], accessKey)
			case i == 4: // absent there: gone is gone
				fmt.Fprintf(&b, "<Error><Key>pre/fix/%s</Key><Code>NoSuchVersion</Code></Error>", k)
			case i != 3:
				fmt.Fprintf(&b, "<Deleted><Key>pre/fix/%s</Key></Deleted>", k)
			}
		}
		b.WriteString("</DeleteResult>")
		xmlAnswer(w, http.StatusOK, b.String())
	})
	results, err := s.driver.Delete(context.Background(), keys)
	if err != nil || len(results) != len(keys) || s.count() != 1 {
		t.Fatalf("%d results of %d, %d requests: %v", len(results), len(keys), s.count(), err)
	}
	gone := 0
	for i, r := range results {
		if r.Key != keys[i] {
			t.Fatalf("result %d is for %s", i, r.Key)
		}
		if r.Err == nil {
			gone++
		}
		check(t, r.Err, want[i])
	}
	if gone != 996 {
		t.Errorf("%d gone, want 996", gone)
	}
}
