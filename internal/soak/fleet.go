//go:build unix

package soak

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/strandline/strandline/internal/child"
	"github.com/strandline/strandline/segment"
)

// fleet is the processes that run, and who serves which shard as far as clients know.
type fleet struct {
	site     *site
	writers  []*writer
	auditors []*auditor

	mu     sync.Mutex
	routes map[segment.Shard]string // URLs that clients try next
	homes  map[string]string        // URL -> disk of the process that serves there
}

func newFleet(s *site) *fleet {
	f := &fleet{site: s, routes: map[segment.Shard]string{}, homes: map[string]string{}}
	f.writers = []*writer{newWriter(f, "a", 0, 1), newWriter(f, "b", 2, 3)}
	f.auditors = []*auditor{{fleet: f, name: "auditor-x"}, {fleet: f, name: "auditor-y"}}
	return f
}

// serves puts a writer that was just started in the routes.
func (f *fleet) serves(url, disk string, shards []segment.Shard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.homes[url] = disk
	for _, s := range shards {
		f.routes[s] = url
	}
}

func (f *fleet) route(s segment.Shard) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.routes[s]
}

// diskOf is the disk of the process that served there. A client may be sent to a process
// before we hear where it serves: it is known a moment later.
func (f *fleet) diskOf(url string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.homes[url]
}

// learn takes from an answer where to ask next: at the owner that a refusal names, else,
// if it failed, at the other writer.
func (f *fleet) learn(s segment.Shard, asked string, err error) {
	if err == nil {
		return
	}
	var p *problem
	if errors.As(err, &p) && p.Owner != "" && p.Owner != asked {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.routes[s] = p.Owner
		return
	}
	others := f.urls()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.routes[s] != asked {
		return // somebody knows better already
	}
	for _, u := range others {
		if u != asked {
			f.routes[s] = u
		}
	}
}

func (f *fleet) urls() (out []string) {
	for _, w := range f.writers {
		if u := w.url(); u != "" {
			out = append(out, u)
		}
	}
	return out
}

// owner is the URL of the writer that a shard was given to last.
func (f *fleet) owner(s segment.Shard) string {
	for _, w := range f.writers {
		if w.owns(s) {
			return w.url()
		}
	}
	return ""
}

// endAll ends every process that runs.
func (f *fleet) endAll() error {
	var errs []error
	for _, w := range f.writers {
		errs = append(errs, w.kill())
	}
	for _, a := range f.auditors {
		errs = append(errs, a.kill())
	}
	return errors.Join(errs...)
}

// auditor is one auditor process. Only one goroutine at a time acts on it.
type auditor struct {
	fleet *fleet
	name  string
	proc  *child.Process
	busy  sync.Mutex // held while it is stopped
}

// auditFlags are those of every auditor: the least graces allowed, leases that a stop
// outlasts, and thresholds that make each policy act on objects of this size.
var auditFlags = []string{
	"--auditor-read-grace", "1s", "--auditor-orphan-grace", "5s", "--auditor-lease", "3s", "--settle-lease", "4s",
	"--settle-age", "2s", "--stream-object-min", "48KiB", "--tail-fill-target", "4MiB", "--pack-merge-fan", "3", "--gc-least", "16KiB",
}

func (a *auditor) start() (err error) {
	a.proc, err = a.fleet.site.launch(a.name, nil, a.fleet.site.with(append([]string{"auditor", "--json"}, auditFlags...)...)...)
	return err
}

func (a *auditor) kill() error {
	if a.proc == nil {
		return nil
	}
	p := a.proc
	a.proc = nil
	return p.Kill()
}

// waitListening waits for the line that says where a process serves.
func waitListening(ctx context.Context, p *child.Process, out *lines) (string, error) {
	err := child.Poll(ctx, startTimeout, p.Name+" serves", func() (bool, error) {
		if p.Ended() {
			return true, nil
		}
		return out.first() != "", nil
	})
	url := strings.TrimPrefix(out.first(), "listening on ")
	if url == "" && err == nil {
		<-p.Gone
		err = &child.EndedError{Process: p}
	}
	return url, err
}

// startTimeout holds a recovery while everything else runs on the same two cores.
const startTimeout = 60 * time.Second

// lines keeps the first line that is written to it.
type lines struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf.Len() < 4096 {
		l.buf.Write(b)
	}
	return len(b), nil
}

func (l *lines) first() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	line, _, whole := strings.Cut(l.buf.String(), "\n")
	if !whole {
		return ""
	}
	return line
}
