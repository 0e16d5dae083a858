package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// ready says what /readyz says, in the exit code too.
func TestReadyCommand(t *testing.T) {
	for name, c := range map[string]struct {
		answer     func(w http.ResponseWriter)
		code       int
		out, fails string
	}{
		"ready": {func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"status":"ready"}`)) }, exitOK, "ready\n", ""},
		"held":  {func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"status":"ready","holds":["rolled-back"]}`)) }, exitOK, "ready, but deletes are held: rolled-back\n", ""},
		"not ready": {func(w http.ResponseWriter) {
			w.WriteHeader(503)
			_, _ = w.Write([]byte(`{"status":503,"title":"not ready","detail":"poisoned"}`))
		}, exitUnavailable, "", "poisoned"},
		"no answer": {func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) }, exitUnavailable, "", "no answer of strandline's"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/readyz" {
					t.Errorf("asked %s", r.URL.Path)
				}
				c.answer(w)
			}))
			defer s.Close()
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"ready", "--server", s.URL + "/"}, streams{out: &out, err: &errs})
			if code != c.code || out.String() != c.out || !strings.Contains(errs.String(), c.fails) {
				t.Errorf("exit %d, %q, %q", code, out.String(), errs.String())
			}
		})
	}
	var errs bytes.Buffer
	if code := run(t.Context(), []string{"ready", "--server", "http://127.0.0.1:1"}, streams{out: &errs, err: &errs}); code != exitUnavailable {
		t.Errorf("nobody there: exit %d, %s", code, errs.String())
	}
	if code := run(t.Context(), []string{"ready", "--server", "ftp://x"}, streams{out: &errs, err: &errs}); code != exitUsage {
		t.Errorf("a wrong URL: exit %d", code)
	}
}
