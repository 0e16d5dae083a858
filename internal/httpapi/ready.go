package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// checkEvery is how long the answer of a ReadyCheck stands: probes come from everywhere.
	checkEvery = 5 * time.Second
	// checkTime bounds one: a probe gives up after a few seconds, too.
	checkTime = 3 * time.Second
)

// checks remembers what catalog and store said last.
type checks struct {
	mu   sync.Mutex // held while one is under way: the others wait for its answer
	at   time.Time
	last error
}

func (c *checks) ask(ctx context.Context, check func(context.Context) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.at.IsZero() || now.Sub(c.at) >= checkEvery {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTime)
		defer cancel()
		c.last, c.at = check(ctx), now
	}
	return c.last
}

// readiness is the answer of a process that is ready.
type readiness struct {
	Status string   `json:"status"`
	Holds  []string `json:"holds,omitempty"`
}

// ready says whether requests should come here: a writer whose shards all take rows (none
// is poisoned, fenced or halted, and the disk has room); without a writer, a process whose
// catalog and store answer.
func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	var err error
	switch {
	case s.stopping():
		err = errStopping
	case s.Writer != nil:
		err = s.Writer.Ready()
	case s.ReadyCheck != nil:
		err = s.checks.ask(r.Context(), s.ReadyCheck)
	}
	if err != nil {
		w.Header().Set("Retry-After", "1")
		writeProblem(w, problem{Status: http.StatusServiceUnavailable, Code: "not-ready", Title: "not ready", Detail: err.Error()})
		return
	}
	answer := readiness{Status: "ready"}
	if s.Holds != nil {
		answer.Holds = s.Holds()
	}
	reply(w, http.StatusOK, answer)
}

func (s *server) stopping() bool {
	select {
	case <-s.Stopping:
		return true
	default:
		return false
	}
}

// alive is cheap: a busy process is not a dead one, and one whose catalog is away is not
// mended by a restart.
func (s *server) alive(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]string{"status": "alive"})
}
