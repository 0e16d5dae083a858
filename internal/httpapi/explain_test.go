package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/strandline/strandline/check"
)

func TestExplainRoute(t *testing.T) {
	var asked Question
	var fault error
	h := Handler(Deps{Explain: func(_ context.Context, q Question) (any, error) {
		asked = q
		return map[string]string{"situation": "live"}, fault
	}})
	get := func(query string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/explain"+query, nil))
		return w.Code, w.Body.String()
	}
	for query, want := range map[string]Question{
		"?key=seg/1":                      {Key: "seg/1"},
		"?stream=a%20b&pos=e1.t3.7":       {Stream: "a b", Pos: "e1.t3.7"},
		"?stream=s&pos=first&read=true":   {Stream: "s", Pos: "first", Read: true},
		"?stream=key&pos=last&read=false": {Stream: "key", Pos: "last"},
	} {
		if code, body := get(query); code != http.StatusOK || asked != want || !strings.Contains(body, "live") {
			t.Errorf("%s: %d %s, asked %+v", query, code, body, asked)
		}
	}
	for _, query := range []string{"", "?key=a&stream=b&pos=1", "?key=a&pos=1", "?stream=b", "?pos=1", "?key=a&other=1"} {
		asked = Question{}
		if code, body := get(query); code != http.StatusBadRequest || asked != (Question{}) || !strings.Contains(body, "invalid-request") {
			t.Errorf("%s: %d %s, asked %+v", query, code, body, asked)
		}
	}
	for err, want := range map[error]int{
		fmt.Errorf("%w: x", check.ErrNothing): http.StatusNotFound, Refused(errors.New("pos 0")): http.StatusBadRequest, errors.New("x"): http.StatusInternalServerError,
	} {
		fault = err
		if code, body := get("?key=a"); code != want {
			t.Errorf("%v: %d %s", err, code, body)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/explain?key=a", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", w.Code)
	}
	w = httptest.NewRecorder()
	Handler(Deps{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/explain?key=a", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("a server that explains nothing: %d", w.Code)
	}
}
