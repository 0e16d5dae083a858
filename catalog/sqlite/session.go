package sqlite

import (
	"context"
	"fmt"
	"os"

	"github.com/strandline/strandline/catalog"
)

// The sessions of a file: the one that was opened, or another one in its place, or none.
const (
	opened   catalog.Session = "opened"
	replaced catalog.Session = "replaced"
)

// Session is that of the file: it ends when another one is put in its place, which the
// connections here would never see. An older copy that is written over the very same file is
// not noticed; under a running process that breaks the file, as SQLite says.
func (d *DB) Session(context.Context) (catalog.Session, error) {
	if err := d.enter(); err != nil {
		return "", err
	}
	defer d.closing.RUnlock()
	if err := d.stands(); err != nil {
		return "", err
	}
	return opened, nil
}

// inSession holds a verb to the session that its caller bound it to, and to the file, as its
// transaction begins: it may have waited in the committer's queue.
func (d *DB) inSession(ctx context.Context, verb string, fn func(*tx) error) func(*tx) error {
	return func(t *tx) error {
		if err := catalog.CheckSession(ctx, verb, d.session); err != nil {
			return err
		}
		if err := d.stands(); err != nil {
			return err
		}
		return fn(t)
	}
}

// stands refuses every verb in a file that has lost its name: what was written there would be
// seen by nobody else, and an acknowledgement that waits for the catalog would be worth nothing.
// With its name back (the newest copy, moved aside for a while) it goes on.
func (d *DB) stands() error {
	if d.session() == replaced {
		return fmt.Errorf("%w: %s is not the file that this process opened, which nobody else sees any more: end this process, and start it on the newest copy", catalog.ErrUnavailable, d.opt.Path)
	}
	return nil
}

// session costs a look at the file's name.
func (d *DB) session() catalog.Session {
	if now, err := os.Stat(d.opt.Path); err != nil || !os.SameFile(now, d.file) {
		return replaced
	}
	return opened
}
