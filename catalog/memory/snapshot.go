package memory

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
// since is lost, marker versions and stream ids included. A snapshot may be restored
// any number of times, into any catalog.
func (c *Catalog) Restore(s *Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = s.t.clone()
	c.changes++
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
