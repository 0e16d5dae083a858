package otlp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// TestInForm: what others refuse comes in the request's form, with the code that OTLP's
// senders act on; what is no refusal goes through as it is.
func TestInForm(t *testing.T) {
	for _, x := range []struct {
		http int
		code codes.Code
	}{
		{401, codes.Unauthenticated},
		{403, codes.PermissionDenied},
		{404, codes.Unimplemented},
		{405, codes.Unimplemented},
		{408, codes.DeadlineExceeded},
		{413, codes.InvalidArgument},
		{500, codes.Internal},
		{503, codes.Unavailable},
	} {
		h := InForm(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", asProblem)
			w.Header().Set("WWW-Authenticate", "Bearer")
			if x.http == 503 {
				w.Header().Set("Retry-After", "7")
			}
			w.WriteHeader(x.http)
			_, _ = io.WriteString(w, `{"code":"some-code","title":"a title",`)
			_, _ = io.WriteString(w, `"detail":"what to do","request_id":"r1"}`)
		}))
		for _, form := range []string{asProtobuf, asJSON, asJSON + "; charset=utf-8", ""} {
			w := post(h, form, []byte("x"))
			want := asJSON
			if form == asProtobuf {
				want = asProtobuf
			}
			if w.Code != x.http || w.Header().Get("Content-Type") != want || w.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("%d of %q: %d %v", x.http, form, w.Code, w.Header())
			}
			st := statusOf(t, w)
			if codes.Code(st.GetCode()) != x.code || st.GetMessage() != "what to do (some-code, request r1)" {
				t.Errorf("%d: %v", x.http, st)
			}
			if again := x.http == 503; again != (retryOf(st) == 7*time.Second) || again != (w.Header().Get("Retry-After") == "7") {
				t.Errorf("%d: %v %v", x.http, st, w.Header())
			}
		}
	}
	flushed := InForm(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", asProblem)
		w.WriteHeader(401)
		_, _ = io.WriteString(w, `{"code":"some-code","title":"a title"}`)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler) // the body that it did not wait for is cut
	}))
	func() {
		w := httptest.NewRecorder()
		defer func() {
			if st := statusOf(t, w); recover() == nil || w.Code != 401 || codes.Code(st.GetCode()) != codes.Unauthenticated {
				t.Errorf("flushed: %d %s", w.Code, w.Body)
			}
		}()
		req := httptest.NewRequest(http.MethodPost, "/v1/logs", strings.NewReader("x"))
		req.Header.Set("Content-Type", asProtobuf)
		flushed.ServeHTTP(w, req)
	}()
	through := InForm(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "as it is")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
	}))
	if w := post(through, asProtobuf, nil); w.Code != 200 || w.Body.String() != "as it is" || !w.Flushed {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestInFormIsWhole: an answer over a wire has its own length, not the problem's.
func TestInFormIsWhole(t *testing.T) {
	const problem = `{"code":"some-code","title":"a title","detail":"what to do","request_id":"r1"}`
	server := httptest.NewServer(InForm(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", asProblem)
		w.Header().Set("Content-Length", strconv.Itoa(len(problem)))
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, problem)
	})))
	defer server.Close()
	for _, form := range []string{asProtobuf, asJSON} {
		answer, err := server.Client().Post(server.URL, form, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // it was read to its end, or failed
		if err != nil || answer.StatusCode != http.StatusUnauthorized || answer.ContentLength != int64(len(body)) || !strings.Contains(string(body), "what to do") {
			t.Errorf("%s: %s of %d bytes: %q, %v", form, answer.Status, answer.ContentLength, body, err)
		}
	}
}

// TestSlowBody: a body that does not come in time is no malformed one.
func TestSlowBody(t *testing.T) {
	l := newLog()
	req := httptest.NewRequest(http.MethodPost, "/v1/logs", io.MultiReader(strings.NewReader("ab"), slow{}))
	req.Header.Set("Content-Type", asProtobuf)
	w := httptest.NewRecorder()
	receiver(t, l, nil).ServeHTTP(w, req)
	if st := statusOf(t, w); w.Code != http.StatusRequestTimeout || codes.Code(st.GetCode()) != codes.DeadlineExceeded || len(l.calls) > 0 {
		t.Errorf("%d %v, %d appends", w.Code, st, len(l.calls))
	}
}

// slow is a body whose time is over.
type slow struct{}

func (slow) Read([]byte) (int, error) { return 0, slow{} }
func (slow) Error() string            { return "too slow" }
func (slow) Timeout() bool            { return true }
