package telemetry

// observeCache is the object cache, seen from its clients and from within.
func (src *Sources) observeCache(s sink) {
	src.observeCacheClients(s)
	if src.Cache != nil {
		src.observeInstance(s)
	}
}

func (src *Sources) observeCacheClients(s sink) {
	clients := src.cacheClients()
	for _, store := range sortedKeys(clients) {
		c := clients[store]
		for _, e := range []struct {
			event string
			n     int64
		}{
			{"reads", c.Reads},
			{"fallbacks", c.Fallbacks},
			{"failures", c.Failures},
			{"deletes", c.Deletes},
			{"direct", c.Direct},
			{"evicted", c.Evicted},
			{"dropped", c.Dropped},
		} {
			s.put("strandline_object_cache_client_events_total", float64(e.n), store, e.event)
		}
		s.put("strandline_object_cache_client_read_bytes_total", float64(c.ReadBytes), store)
		s.put("strandline_object_cache_client_owed_keys", float64(c.Owed), store)
	}
}

func (src *Sources) observeInstance(s sink) {
	c := src.Cache()
	for _, x := range []struct {
		name string
		n    int64
	}{
		{"strandline_object_cache_bytes", c.Bytes},
		{"strandline_object_cache_max_bytes", c.Max},
		{"strandline_object_cache_blocks", c.Blocks},
		{"strandline_object_cache_hits_total", c.Hits},
		{"strandline_object_cache_hit_bytes_total", c.HitBytes},
		{"strandline_object_cache_misses_total", c.Misses},
		{"strandline_object_cache_joined_total", c.Joined},
		{"strandline_object_cache_store_gets_total", c.StoreGets},
		{"strandline_object_cache_store_bytes_total", c.StoreBytes},
		{"strandline_object_cache_evictions_total", c.Evictions},
		{"strandline_object_cache_forgotten_total", c.Forgotten},
		{"strandline_object_cache_deleted_keys_total", c.Deletes},
	} {
		s.put(x.name, float64(x.n))
	}
	s.put("strandline_object_cache_objects", float64(c.Objects), "all")
	s.put("strandline_object_cache_objects", float64(c.Busy), "busy")
	s.put("strandline_object_cache_unkept_total", float64(c.WriteErrors), "disk")
	s.put("strandline_object_cache_unkept_total", float64(c.Unkept-c.WriteErrors), "other")
	s.put("strandline_object_cache_damage_total", float64(c.Poisoned), "poisoned")
	s.put("strandline_object_cache_damage_total", float64(c.Changed), "changed")
}
