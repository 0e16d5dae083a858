package sqlite

import (
	"context"
	"fmt"
	"os"

	"github.com/strandline/strandline/catalog"
)

// replaced is the session of a file that is not the one that was opened.
const replaced catalog.Session = "replaced"

// Session is that of the file: it ends when another one is put in its place, which the
// connections here would never see. An older copy that is written over the very same file is
// not noticed; under a running process that breaks the file, as SQLite says.
func (d *DB) Session(context.Context) (catalog.Session, error) {
	if err := d.enter(); err != nil {
		return "", err
	}
	defer d.closing.RUnlock()
	s := d.session()
	if s == replaced {
		return "", fmt.Errorf("%w: %s is not the file that this process opened, which goes on in one that nobody else sees: end this process, and start it on the newest copy", catalog.ErrUnavailable, d.opt.Path)
	}
	return s, nil
}

// session costs a look at the file's name.
func (d *DB) session() catalog.Session {
	if now, err := os.Stat(d.opt.Path); err != nil || !os.SameFile(now, d.file) {
		return replaced
	}
	return "opened"
}
