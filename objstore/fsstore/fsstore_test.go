package fsstore_test

import (
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/fsstore"
	"github.com/strandline/strandline/objstore/storetest"
)

func open(t *testing.T, dir string) *fsstore.Driver {
	t.Helper()
	d, err := fsstore.Open(dir, fsstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) objstore.Driver { return open(t, t.TempDir()) })
}

func TestStore(t *testing.T) {
	storetest.RunStore(t, func(t *testing.T) objstore.Driver { return open(t, t.TempDir()) })
}
