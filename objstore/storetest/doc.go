// Package storetest holds every promise of objstore.Driver against a driver (Run),
// and those of objstore.Store against a Store over it (RunStore).
//
//	storetest.Run(t, func(t *testing.T) objstore.Driver { return memstore.New(memstore.Options{}) })
//
// Each case is a subtest with a driver of its own from open; several may share one
// bucket, since a case works under a prefix that no other case has. Cases obey the
// rules of the bucket themselves: only keys under rw/ are overwritten.
//
// Where stores differ lawfully, the case reads Capabilities or accepts both
// answers, and says so.
//
//	storetest.go  Run; put.go, get.go, list.go, delete.go, upload.go, copy.go, race.go its cases
//	store.go      RunStore; writer.go its cases of uploads
//	bench.go      Benchmark
package storetest
