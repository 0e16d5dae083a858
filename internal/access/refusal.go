package access

import (
	"encoding/json"
	"net/http"
)

// problem is RFC 9457's body with a stable code, as all routes answer.
type problem struct {
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Title     string `json:"title"`
	Detail    string `json:"detail,omitempty"`
	RequestID string `json:"request_id,omitempty"`
}

// realm of every challenge.
const realm = `Bearer realm="strandline"`

// problemOf is the answer to a refusal; challenge is its WWW-Authenticate (RFC 6750 §3).
func problemOf(v verdict, scope string) (p problem, challenge string) {
	p = problem{Status: http.StatusUnauthorized, Code: "unauthenticated", Title: "authentication is needed"}
	switch v {
	case lacking:
		p = problem{
			Status: http.StatusForbidden, Code: "forbidden", Title: "the token may not do this",
			Detail: "this needs scope " + scope + ": use a token that lists it, or have it added in the token file",
		}
		return p, realm + `, error="insufficient_scope", scope="` + scope + `"`
	case unknown:
		p.Detail = "the token is not known here: it may have been revoked, or belong to another deployment"
		return p, realm + `, error="invalid_token"`
	case malformed:
		p.Detail = "send one header Authorization: Bearer TOKEN"
		return p, realm + `, error="invalid_request"`
	default:
		p.Detail = "send Authorization: Bearer TOKEN with scope " + scope
		return p, realm
	}
}

func writeRefusal(w http.ResponseWriter, v verdict, scope string) {
	p, challenge := problemOf(v, scope)
	p.RequestID = w.Header().Get("X-Request-Id")
	w.Header().Set("WWW-Authenticate", challenge)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a client that went away is not our fault
}

// attempt is what a log line may say of a request: nothing that its sender wrote but an id
// that was checked.
type attempt struct {
	what, from, id, scope string
}

// count notes a decision, and tells of refusals, so many a second.
func (t *Tokens) count(v verdict, e *Entry, a attempt) {
	switch v {
	case granted:
		t.stats.granted.Add(1)
		return
	case lacking:
		t.stats.forbidden.Add(1)
	default:
		t.stats.unauthorized.Add(1)
	}
	if !t.refusals.Allow() {
		t.unsaid.Add(1)
		return
	}
	name := ""
	if e != nil {
		name = e.Name
	}
	t.log.Warn("a request was refused", "reason", reasons[v], "token", name, "scope", a.scope, "route", a.what, "from", a.from,
		"request_id", a.id, "not_logged_before", t.unsaid.Swap(0))
}
