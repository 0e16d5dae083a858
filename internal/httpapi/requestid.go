package httpapi

import (
	"net/http"

	"github.com/google/uuid"
)

// requestHeader names a request: in the answer, in its problem and in the logs.
const requestHeader = "X-Request-Id"

// maxRequestID bounds what a client may call its request.
const maxRequestID = 128

// identified gives every answer its request's id: the client's if it is one, else a new
// one. What comes after takes it from the answer's header (requestID).
func identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := ""
		if given := r.Header[requestHeader]; len(given) == 1 && goodRequestID(given[0]) {
			id = given[0]
		} else if u, err := uuid.NewV7(); err == nil {
			id = u.String()
		} else {
			id = uuid.NewString()
		}
		w.Header()[requestHeader] = []string{id}
		next.ServeHTTP(w, r)
	})
}

// goodRequestID lets in what can stand in a header, a log and a document as it is.
func goodRequestID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// requestID is the id of the request that w answers.
func requestID(w http.ResponseWriter) string { return w.Header().Get(requestHeader) }
