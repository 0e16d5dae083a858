package memory

import (
	"context"
	"strconv"

	"github.com/strandline/strandline/catalog"
)

// Snapshot is the state of a catalog at one moment. It never changes.
type Snapshot struct {
	t *tables
}

// Snapshot takes the state as it stands. It costs little: blocks are shared until
// one side writes to them.
func (c *Catalog) Snapshot() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Snapshot{t: c.t.clone()}
}

// Restore brings a state back, as a fail-over to an old copy does: all that happened
// since is lost, marker versions and stream ids included, and so the session ends. A snapshot
// may be restored any number of times, into any catalog.
func (c *Catalog) Restore(s *Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restore(s)
	c.sessions++
}

// RestoreUnseen is Restore behind the back of a session that goes on, as if an old dump had
// been read into a database that serves.
func (c *Catalog) RestoreUnseen(s *Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restore(s)
}

// restore has c.mu held.
func (c *Catalog) restore(s *Snapshot) {
	c.t = s.t.clone()
	c.changes++
}

// Session ends with Restore.
func (c *Catalog) Session(ctx context.Context) (s catalog.Session, err error) {
	err = c.read(ctx, "Session", func(*tx) error {
		s = c.session()
		return nil
	})
	return s, err
}

// session has c.mu held.
func (c *Catalog) session() catalog.Session {
	return catalog.Session(strconv.Itoa(c.sessions + 1))
}

// View reads a snapshot.
func (s *Snapshot) View() View { return View{s.t} }

// View runs fn on the rows as they stand, in one critical section: no verb happens
// meanwhile, and fn must call none.
func (c *Catalog) View(fn func(View)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fn(View{c.t})
}
