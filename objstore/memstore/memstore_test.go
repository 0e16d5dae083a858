package memstore_test

import (
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/memstore"
	"github.com/strandline/strandline/objstore/storetest"
)

func TestConformance(t *testing.T) {
	for name, opts := range map[string]memstore.Options{
		"plain":    {},
		"aws":      {MinPart: 5 << 20, MinCopy: 5 << 20},
		"paged":    {PageSize: 3, EmptyPages: true, MinPart: 100},
		"shuffled": {PageSize: 3, Shuffle: 42, MinPart: 100},
		"equal":    {EqualParts: true, MaxDelete: 2},
		"express":  {PageSize: 3, Shuffle: 43, EmptyPages: true, DirectoryPrefix: true},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(*testing.T) objstore.Driver { return memstore.New(opts) })
		})
	}
}

func TestStore(t *testing.T) {
	for name, opts := range map[string]memstore.Options{
		"plain":    {},
		"small":    {MinPart: 1000, MinCopy: 1000},
		"shuffled": {PageSize: 3, Shuffle: 42, EmptyPages: true},
		"equal":    {EqualParts: true, MaxDelete: 2},
		"express":  {PageSize: 3, Shuffle: 43, EmptyPages: true, DirectoryPrefix: true},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.RunStore(t, func(*testing.T) objstore.Driver { return memstore.New(opts) })
		})
	}
}

func BenchmarkDriver(b *testing.B) { storetest.Benchmark(b, memstore.New(memstore.Options{})) }
