package memstore

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/strandline/strandline/objstore"
)

// Violations are the rules broken so far, in order; a test ends with none.
func (d *Driver) Violations() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.violations)
}

// violate records one. d.mu is held.
func (d *Driver) violate(format string, args ...any) {
	d.violations = append(d.violations, fmt.Sprintf(format, args...))
}

// judgeWrite looks at a write that is about to happen. d.mu is held.
func (d *Driver) judgeWrite(key string, b []byte, old object, stands bool) {
	if d.opts.Mutable(key) {
		return
	}
	if stands && !bytes.Equal(old.body, b) {
		d.violate("overwrite of immutable %s with other bytes", key)
	}
	if grave, dead := d.graves[key]; dead && !stands && grave != sha256.Sum256(b) {
		d.violate("re-creation of deleted %s with other bytes", key)
	}
}

// judgeRead looks at a read that found nothing. d.mu is held.
func (d *Driver) judgeRead(op objstore.Op, key string) {
	if _, dead := d.graves[key]; dead && !d.opts.Mutable(key) && !d.opts.MayReadDeleted(key) {
		d.violate("%s of deleted %s", op, key)
	}
}
