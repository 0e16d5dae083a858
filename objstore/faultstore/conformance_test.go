package faultstore_test

import (
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/objstore/storetest"
)

func TestConformanceWithoutFaults(t *testing.T) {
	storetest.Run(t, func(*testing.T) objstore.Driver {
		return faultstore.Wrap(memstore.New(memstore.Options{MinPart: 100}), nil)
	})
}
