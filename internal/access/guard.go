package access

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

// ErrRevoked ends the context of an answer whose token is no longer good for it.
var ErrRevoked = errors.New("the token was revoked, or has lost the scope: go on after the last row with one that is good")

// lastWords is how long an answer that is ended may take to say so: a client that reads
// nothing must not keep it open.
const lastWords = 2 * time.Second

// Guard serves next to requests whose token has the scope, and answers the others 401 or
// 403. A read whose token is revoked meanwhile finds its context ended with ErrRevoked, and
// its connection cut soon after. Other requests are let finish: they are short, and an
// append that is cut may have happened or not.
func (t *Tokens) Guard(scope string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, e := t.decide(scope, r.Header.Values("Authorization"))
		t.count(v, e, attempt{what: r.Pattern, from: r.RemoteAddr, id: w.Header().Get("X-Request-Id"), scope: scope})
		if v != granted {
			writeRefusal(w, v, scope)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, e.Name))
		if r.Method != http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancelCause(r.Context())
		s := &session{hash: e.Hash, scope: scope, end: func() {
			cancel(ErrRevoked)
			// Writers without deadlines are a test's.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(lastWords))
		}}
		t.begin(s)
		defer func() {
			t.finish(s)
			cancel(nil)
		}()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// callerKey is where the name of a request's token stands.
type callerKey struct{}

// Caller is the name of the token that a request came with; empty: it needed none.
func Caller(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}

// session is one answer under way.
type session struct {
	hash  Hash
	scope string
	end   func() // called once at most, and not after finish
}

// begin notes a session. A file that was swapped between its decision and now has looked
// at the sessions already: it is looked at once more.
func (t *Tokens) begin(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions[s] = struct{}{}
	if !s.good(*t.set.Load()) {
		t.endLocked(s)
	}
}

// finish takes the lock, so that end never touches a writer that net/http has taken back.
func (t *Tokens) finish(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sessions, s)
}

// revoke ends the sessions that the set in force would not grant.
func (t *Tokens) revoke() (ended int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	entries := *t.set.Load()
	for s := range t.sessions {
		if !s.good(entries) {
			t.endLocked(s)
			ended++
		}
	}
	return ended
}

func (t *Tokens) endLocked(s *session) {
	delete(t.sessions, s)
	t.stats.revoked.Add(1)
	s.end()
}

// good says whether its token still has its scope, under whatever name.
func (s *session) good(entries []Entry) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.Hash == s.hash && slices.Contains(e.Scopes, s.scope) })
}
