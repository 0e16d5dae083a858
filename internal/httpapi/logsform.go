package httpapi

import "net/http"

// logsInForm is outermost: whatever refuses a request of the logs' route, its sender can read it.
func (d *Deps) logsInForm(all http.Handler) http.Handler {
	if d.LogsForm == nil {
		return all
	}
	logs := d.LogsForm(all)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == logsPattern {
			logs.ServeHTTP(w, r)
			return
		}
		all.ServeHTTP(w, r)
	})
}
