package httpapi

import (
	"fmt"
	"net/http"
	"slices"
)

// Question is what GET /v1/explain asks: ?key=, or ?stream=&pos= (and read=true, to read the
// row's chunk).
type Question struct {
	Key, Stream, Pos string
	Read             bool
}

// Refused makes an error of whoever answers a Question one of the request's.
func Refused(err error) error { return fmt.Errorf("%w: %w", errBadRequest, err) }

func (s *server) explain(w http.ResponseWriter, r *http.Request) {
	q, err := questionOf(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	answer, err := s.Explain(r.Context(), q)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, http.StatusOK, answer)
}

func questionOf(r *http.Request) (q Question, err error) {
	v := r.URL.Query()
	for name := range v {
		if !slices.Contains([]string{"key", "stream", "pos", "read"}, name) {
			return q, fmt.Errorf("%w: %s: give key, or stream and pos, and read", errBadRequest, name)
		}
	}
	q = Question{Key: v.Get("key"), Stream: v.Get("stream"), Pos: v.Get("pos"), Read: v.Get("read") == "true"}
	if (q.Key != "") == (q.Stream != "" || q.Pos != "") || q.Key == "" && (q.Stream == "" || q.Pos == "") {
		return q, fmt.Errorf("%w: give key, or stream and pos (first, last, a seq, EPOCH.SEQ or a token)", errBadRequest)
	}
	return q, nil
}
