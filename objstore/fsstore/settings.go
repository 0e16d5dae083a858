package fsstore

import (
	"context"
	"fmt"

	"github.com/strandline/strandline/objstore"
)

var _ objstore.Inspector = (*Driver)(nil)

// Settings knows the clock, which is this machine's. A directory has none of the rest.
func (d *Driver) Settings(context.Context) (objstore.Settings, error) {
	if err := d.stands("settings", d.root); err != nil {
		return objstore.Settings{}, err
	}
	unknown := map[string]error{}
	for _, field := range []string{"Versioning", "ObjectLock", "Expiry", "AbortsAfter"} {
		unknown[field] = &objstore.Error{Op: "settings", Key: field, Kind: objstore.ErrUnsupported, Err: fmt.Errorf("a directory has no such setting")}
	}
	return objstore.Settings{Date: d.clock(), Unknown: unknown}, nil
}
