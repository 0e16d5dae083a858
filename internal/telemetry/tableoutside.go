package telemetry

// outsideTable is what a process asks of others: stores, catalog, object cache.
func outsideTable() []Group {
	return []Group{
		{Title: "Stores", From: []string{Up, Writer, Auditor, Reader, Cache}, Metrics: storeTable()},
		{Title: "The catalog", From: []string{Up, Writer, Auditor, Reader}, Metrics: []Metric{
			{Name: "strandline_catalog_verb_seconds", Kind: Histogram, Unit: Seconds, Labels: []string{"verb", "outcome"}, Help: "Verbs by name and by the kind of their error (ok if there was none; newer: of a schema that this build does not know).", made: recorded},
			{Name: "strandline_catalog_connections", Kind: Gauge, Unit: None, Labels: []string{"state"}, Help: "Connections: open, in-use, max."},
			{Name: "strandline_catalog_connection_waits_total", Kind: Counter, Unit: None, Help: "Verbs that found no free connection (PostgreSQL)."},
			{Name: "strandline_catalog_connection_wait_seconds_total", Kind: Counter, Unit: Seconds, Help: "How long they waited."},
		}},
		{Title: "Through the object cache", From: []string{Up, Writer, Auditor, Reader}, Metrics: clientTable()},
		{Title: "An instance of the object cache", From: []string{Cache}, Metrics: instanceTable()},
	}
}

func storeTable() []Metric {
	store := []string{"store"}
	return []Metric{
		{Name: "strandline_store_requests_total", Kind: Counter, Unit: None, Labels: []string{"store", "op", "outcome"}, Help: "Attempts, as the bill counts them; the outcome is ok or the kind of the error. not-found, exists and precondition are answers, too."},
		{Name: "strandline_store_request_seconds", Kind: Histogram, Unit: Seconds, Labels: []string{"store", "op"}, Help: "How long attempts took, bodies that are read afterwards not included.", made: counted},
		{Name: "strandline_store_bytes_total", Kind: Counter, Unit: Bytes, Labels: []string{"store", "direction"}, Help: "Bytes read (in), sent (out), moved within the store (copied)."},
		{Name: "strandline_store_retries_total", Kind: Counter, Unit: None, Labels: store, Help: "Pauses before a further attempt of the same call."},
		{Name: "strandline_store_throttled_total", Kind: Counter, Unit: None, Labels: store, Help: "Attempts that were refused for the store's load."},
		{Name: "strandline_store_held_total", Kind: Counter, Unit: None, Labels: store, Help: "Attempts that waited for the brake, or were not sent for it."},
		{Name: "strandline_store_brake_seconds", Kind: Gauge, Unit: Seconds, Labels: store, Help: "How long the brake holds attempts back from now on."},
	}
}

func clientTable() []Metric {
	store := []string{"store"}
	return []Metric{
		{Name: "strandline_object_cache_client_events_total", Kind: Counter, Unit: None, Labels: []string{"store", "event"}, Help: "reads (ranges that an instance answered), fallbacks (that the store had to give after all), failures (calls in which an instance failed), deletes, direct (deleted without an instance), evicted (forgotten late), dropped.", optional: true},
		{Name: "strandline_object_cache_client_read_bytes_total", Kind: Counter, Unit: Bytes, Labels: store, Help: "Bytes that instances answered.", optional: true},
		{Name: "strandline_object_cache_client_owed_keys", Kind: Gauge, Unit: None, Labels: store, Help: "Deleted keys that an instance has not been told to forget yet.", optional: true},
	}
}

func instanceTable() []Metric {
	return []Metric{
		{Name: "strandline_object_cache_bytes", Kind: Gauge, Unit: Bytes, Help: "Bytes of all files."},
		{Name: "strandline_object_cache_max_bytes", Kind: Gauge, Unit: Bytes, Help: "They never pass this (--cache-bytes)."},
		{Name: "strandline_object_cache_blocks", Kind: Gauge, Unit: None, Help: "Blocks in files."},
		{Name: "strandline_object_cache_objects", Kind: Gauge, Unit: None, Labels: []string{"state"}, Help: "Objects of which anything is cached or under way: all, busy."},
		{Name: "strandline_object_cache_hits_total", Kind: Counter, Unit: None, Help: "Blocks served from files."},
		{Name: "strandline_object_cache_hit_bytes_total", Kind: Counter, Unit: Bytes, Help: "Bytes of them."},
		{Name: "strandline_object_cache_misses_total", Kind: Counter, Unit: None, Help: "Waits for a GET of the store."},
		{Name: "strandline_object_cache_joined_total", Kind: Counter, Unit: None, Help: "Of them, for one that was under way already."},
		{Name: "strandline_object_cache_store_gets_total", Kind: Counter, Unit: None, Help: "GETs of the store."},
		{Name: "strandline_object_cache_store_bytes_total", Kind: Counter, Unit: Bytes, Help: "Bytes of them."},
		{Name: "strandline_object_cache_evictions_total", Kind: Counter, Unit: None, Help: "Blocks that had to make room."},
		{Name: "strandline_object_cache_unkept_total", Kind: Counter, Unit: None, Labels: []string{"reason"}, Help: "Blocks that were served and not kept: disk (it refused), other."},
		{Name: "strandline_object_cache_damage_total", Kind: Counter, Unit: None, Labels: []string{"kind"}, Help: "poisoned (files that were not what they had been), changed (keys that had two contents). Neither was served."},
		{Name: "strandline_object_cache_forgotten_total", Kind: Counter, Unit: None, Help: "Keys forgotten, by deletes and evictions."},
		{Name: "strandline_object_cache_deleted_keys_total", Kind: Counter, Unit: None, Help: "Keys that are gone from the store through this instance."},
	}
}
