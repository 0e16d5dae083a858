package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// TestReadChunks: lines come in order, each once, in chunks within the bound; a line that is
// larger is a chunk of its own; what a pause leaves is sent.
func TestReadChunks(t *testing.T) {
	var in bytes.Buffer
	var want []string
	for i := range 200 {
		line := fmt.Sprintf("%d-%s", i, strings.Repeat("x", i*977%200_000))
		want = append(want, line)
		in.WriteString(line + "\n")
	}
	large := strings.Repeat("y", 3*batchBytes)
	want = append(want, large, "", "last")
	in.WriteString(large + "\n\nlast") // without an end
	out := make(chan chunk)
	go readChunks(t.Context(), &in, batchBytes, out)
	next := 0
	for c := range out {
		if c.first != next+1 {
			t.Fatalf("a chunk begins at line %d, want %d", c.first, next+1)
		}
		if c.bytes > batchBytes && len(c.lines) > 1 {
			t.Errorf("line %d: %d lines of %d bytes in one chunk", c.first, len(c.lines), c.bytes)
		}
		for _, line := range c.lines {
			if string(line) != want[next] {
				t.Fatalf("line %d is not what was written", next+1)
			}
			next++
		}
		if c.err != nil && (!errors.Is(c.err, io.EOF) || next != len(want)) {
			t.Errorf("after %d of %d lines: %v", next, len(want), c.err)
		}
	}
	if next != len(want) {
		t.Errorf("%d of %d lines", next, len(want))
	}
	// A line that is there is not held back for those that are not.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	out = make(chan chunk)
	ctx, stop := context.WithCancel(t.Context())
	go readChunks(ctx, r, batchBytes, out)
	for _, text := range []string{"one", "two"} {
		if _, err := w.WriteString(text + "\n"); err != nil {
			t.Fatal(err)
		}
		if c := <-out; len(c.lines) != 1 || string(c.lines[0]) != text {
			t.Fatalf("%q", c.lines)
		}
	}
	stop()
	_ = r.Close() // ends the read
}

// TestInterruptedWaits: the answer to what is under way when the signal comes is waited for, and
// counts.
func TestInterruptedWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		cancel()
		<-ctx.Done()
		_, _ = io.WriteString(w, `{"stream":"s","epoch":1,"first":1,"last":1,"rows":1,"last_token":"e1.t1.1"}`) // it is asked whether it came
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	run(ctx, []string{"append", "s", "--server", server.URL}, streams{in: strings.NewReader("one\n"), out: &out, err: &errs})
	if !strings.Contains(out.String(), "1 row, seq 1 to 1") || strings.Contains(errs.String(), "may have been") {
		t.Errorf("%s%s", &out, &errs)
	}
}

// TestBadLine: what stands before a line that is refused is appended, and said.
func TestBadLine(t *testing.T) {
	up := startUp(t, t.TempDir())
	in := `{"k":"a"}` + "\n" + `{"k":"b"}` + "\n" + "no json\n" + `{"k":"c"}` + "\n"
	cli(t, in, "append", "--key-field", "k", "--server", up.url).
		want(t, exitFailed, "line 3: not a JSON object", "2 rows into 2 streams", "acknowledged before it: 2 rows")
	cli(t, "one\n"+strings.Repeat("x", maxLineBytes+1), "append", "s", "--server", up.url).
		want(t, exitFailed, "line 2: longer than", "acknowledged before it: 1 row")
	cli(t, "", "append", "s", "--server", up.url).want(t, exitOK, "no rows")
}
