package telemetry

import (
	"maps"
	"slices"

	"github.com/strandline/strandline/internal/objcache"
	"github.com/strandline/strandline/objstore"
)

// accounts sums the Stores around each bucket: one that reads through the object cache
// and one that does not are the same store to whoever pays.
func (src *Sources) accounts() map[string]*objstore.Account {
	sum := map[string]*objstore.Account{}
	if src.Stores == nil {
		return sum
	}
	for _, store := range src.Stores() {
		name := store.Name()
		if sum[name] == nil {
			sum[name] = &objstore.Account{}
		}
		sum[name].Add(store.Account())
	}
	return sum
}

func (src *Sources) observeStores(s sink) {
	for name, a := range src.accounts() {
		for op, o := range a.Ops {
			var failed int64
			for kind, n := range o.Failed {
				failed += n
				s.put("strandline_store_requests_total", float64(n), name, string(op), kind)
			}
			s.put("strandline_store_requests_total", float64(o.Requests-failed), name, string(op), "ok")
		}
		s.put("strandline_store_bytes_total", float64(a.BytesIn), name, "in")
		s.put("strandline_store_bytes_total", float64(a.BytesOut), name, "out")
		s.put("strandline_store_bytes_total", float64(a.BytesCopied), name, "copied")
		s.put("strandline_store_retries_total", float64(a.Retries), name)
		s.put("strandline_store_throttled_total", float64(a.Throttled), name)
		s.put("strandline_store_held_total", float64(a.Held), name)
		s.put("strandline_store_brake_seconds", a.Braked.Seconds(), name)
	}
	if src.Pool == nil {
		return
	}
	pool := src.Pool()
	s.put("strandline_catalog_connections", float64(pool.Open), "open")
	s.put("strandline_catalog_connections", float64(pool.InUse), "in-use")
	s.put("strandline_catalog_connections", float64(pool.Max), "max")
	s.put("strandline_catalog_connection_waits_total", float64(pool.Waits))
	s.put("strandline_catalog_connection_wait_seconds_total", pool.Waited.Seconds())
}

// cacheClients sums what went through the object cache, by store.
func (src *Sources) cacheClients() map[string]objcache.Stats {
	sum := map[string]objcache.Stats{}
	if src.Stores == nil {
		return sum
	}
	for _, store := range src.Stores() {
		d, ok := store.Driver().(*objcache.Driver)
		if !ok {
			continue
		}
		a, b := sum[store.Name()], d.Stats()
		sum[store.Name()] = objcache.Stats{
			Reads: a.Reads + b.Reads, ReadBytes: a.ReadBytes + b.ReadBytes, Fallbacks: a.Fallbacks + b.Fallbacks, Failures: a.Failures + b.Failures,
			Deletes: a.Deletes + b.Deletes, Direct: a.Direct + b.Direct, Evicted: a.Evicted + b.Evicted, Owed: a.Owed + b.Owed, Dropped: a.Dropped + b.Dropped,
		}
	}
	return sum
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
