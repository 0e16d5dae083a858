package httpapi

import "net/http"

// unambiguous closes the connection after a request whose end another reader of the same
// bytes, a proxy in front, may have seen elsewhere: what it took for the body would be
// the next request here. net/http takes Transfer-Encoding before a Content-Length that
// stands beside it, drops the length, and goes on with the connection, where RFC 9112
// (6.1) has it closed; the length is gone before a handler sees it, so every chunked
// request ends its connection. Senders that know their length are not touched by it.
// CONNECT is no method of ours, and what follows it is for whoever thinks it succeeded.
func unambiguous(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 || r.Method == http.MethodConnect {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
