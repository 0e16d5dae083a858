package telemetry

// chainLabels name a chain. Their number is bounded by the topology: shards an epoch, and
// epochs that are not through yet.
var chainLabels = []string{"epoch", "shard"}

func chainAnd(more ...string) []string { return append([]string{"epoch", "shard"}, more...) }

// writerTable is what only the owner of shards can tell.
func writerTable() []Group {
	from := []string{Up, Writer}
	return []Group{
		{Title: "The local log (seed 001's names)", From: from, Metrics: walTable()},
		{Title: "Shards as their owner sees them", From: from, Metrics: shardTable()},
		{Title: "OTLP logs that come in", From: from, Metrics: []Metric{
			{Name: "strandline_otlp_requests_total", Kind: Counter, Unit: None, Labels: []string{"outcome"}, Help: "Requests over HTTP and gRPC: taken, partial (some records rejected), refused (for good), later (to be sent again)."},
			{Name: "strandline_otlp_records_total", Kind: Counter, Unit: None, Labels: []string{"outcome"}, Help: "Log records: taken (durable; retries among them), rejected."},
		}},
		{Title: "The writer's disk", From: from, Metrics: []Metric{
			{Name: "strandline_quarantine_bytes", Kind: Gauge, Unit: Bytes, Help: "Bytes set aside that never entered the history: salvage or give them up."},
			{Name: "strandline_quarantine_max_bytes", Kind: Gauge, Unit: Bytes, Help: "From here on the writer is not ready (--quarantine-max)."},
			{Name: "strandline_left_behind_shards", Kind: Gauge, Unit: None, Help: "Shards of which this disk has acknowledged rows that the bucket has not, and that no process serves from it; looked at every 5 minutes."},
			{Name: "strandline_left_behind_rows", Kind: Gauge, Unit: None, Help: "Those rows, as far as their logs could be read."},
			{Name: "strandline_disk_free_bytes", Kind: Gauge, Unit: Bytes, Help: "Free on the file system of --dir."},
			{Name: "strandline_disk_size_bytes", Kind: Gauge, Unit: Bytes, Help: "Size of that file system."},
			{Name: "strandline_disk_min_free_bytes", Kind: Gauge, Unit: Bytes, Help: "Below it appends are refused (--min-free-disk); 0: not checked."},
		}},
	}
}

func walTable() []Metric {
	return []Metric{
		{Name: "strandline_wal_appends_total", Kind: Counter, Unit: None, Labels: chainLabels, Help: "Frames appended since the log was opened."},
		{Name: "strandline_wal_rows_total", Kind: Counter, Unit: None, Labels: chainLabels, Help: "Rows in them."},
		{Name: "strandline_wal_appended_bytes_total", Kind: Counter, Unit: Bytes, Labels: chainLabels, Help: "Bytes of them."},
		{Name: "strandline_wal_refused_total", Kind: Counter, Unit: None, Labels: chainLabels, Help: "Appends that met the log's backpressure."},
		{Name: "strandline_wal_syncs_total", Kind: Counter, Unit: None, Labels: chainLabels, Help: "fdatasync calls."},
		{Name: "strandline_wal_sync_seconds", Kind: Histogram, Unit: Seconds, Labels: chainLabels, Help: "How long each fdatasync took.", made: counted},
		{Name: "strandline_wal_unflushed_bytes", Kind: Gauge, Unit: Bytes, Labels: chainLabels, Help: "Appended and not yet fsynced, so not acknowledged; at most two segments."},
		{Name: "strandline_wal_disk_bytes", Kind: Gauge, Unit: Bytes, Labels: chainLabels, Help: "Durable bytes of the segments that stand here."},
		{Name: "strandline_wal_spare_bytes", Kind: Gauge, Unit: Bytes, Labels: chainLabels, Help: "In old segment files that are kept to be written over."},
		{Name: "strandline_wal_segment_count", Kind: Gauge, Unit: None, Labels: chainLabels, Help: "Segments that stand here."},
		{Name: "strandline_wal_segments_total", Kind: Counter, Unit: None, Labels: chainAnd("event"), Help: "Segments begun, sealed, removed, adopted (hydrated), recycled."},
		{Name: "strandline_wal_checkpoint_segment", Kind: Gauge, Unit: None, Labels: chainLabels, Help: "Number of the local segment that the last CHECKPOINT names; 0: none yet."},
		{Name: "strandline_wal_checkpoint_byte", Kind: Gauge, Unit: Bytes, Labels: chainLabels, Help: "The byte in it."},
		{Name: "strandline_wal_recovery_seconds", Kind: Gauge, Unit: Seconds, Labels: chainLabels, Help: "How long recovery took at the start."},
		{Name: "strandline_wal_corrupt_frames_total", Kind: Counter, Unit: None, Labels: chainLabels, Help: "Finds of damage in local files while serving. What recovery finds ends the process instead (exit 3)."},
		{Name: "strandline_wal_rollbacks_total", Kind: Counter, Unit: None, Labels: chainLabels, Help: "Writes taken back, as on a full disk; none of their rows was acknowledged."},
		{Name: "strandline_wal_poisoned", Kind: Gauge, Unit: None, Labels: chainLabels, Help: "1 after a failed fsync: nothing is acknowledged until the writer is started again."},
		{Name: "strandline_wal_index_failures_total", Kind: Counter, Unit: None, Labels: chainLabels, Help: "Writes of index.json that failed; they cost time at the next start, no row."},
	}
}

func shardTable() []Metric {
	return []Metric{
		{Name: "strandline_shard_state", Kind: Gauge, Unit: None, Labels: chainAnd("state"), Help: "1 for the state that the shard is in (serving, lease-lost, fenced, halted, closed), 0 for the others."},
		{Name: "strandline_shard_term", Kind: Gauge, Unit: None, Labels: chainLabels, Help: "Term of the ownership; it grows with every start and every takeover."},
		{Name: "strandline_shard_next_seq", Kind: Gauge, Unit: None, Labels: chainLabels, Help: "Seq of the next row."},
		{Name: "strandline_shard_lease_seconds", Kind: Gauge, Unit: Seconds, Labels: chainLabels, Help: "Left of the lease; below 0 appends are refused (unless --ack-after-lease)."},
		{Name: "strandline_shard_unpublished_bytes", Kind: Gauge, Unit: Bytes, Labels: chainLabels, Help: "Bytes of segments that only this disk has: lost with it."},
		{Name: "strandline_shard_unpublished_segments", Kind: Gauge, Unit: None, Labels: chainLabels, Help: "Those segments."},
		{Name: "strandline_shard_last_absorbed_timestamp_seconds", Kind: Gauge, Unit: Seconds, Labels: chainLabels, Help: "When a slot of this owner was absorbed last; 0: never since the start."},
		{Name: "strandline_shard_hydrate_slots", Kind: Gauge, Unit: None, Labels: chainAnd("state"), Help: "Slots that came back from the bucket (done) and that are to come (wanted)."},
		{Name: "strandline_shard_owed_copies", Kind: Gauge, Unit: None, Labels: chainLabels, Help: "Copies of slots that other buckets of the set still miss."},
		{Name: "strandline_consumers", Kind: Gauge, Unit: None, Labels: chainLabels, Help: "Durable consumers of the shard."},
		{Name: "strandline_cursor_lag_rows", Kind: Gauge, Unit: None, Labels: chainAnd("cursor"), Help: "Rows behind the chain's end: absorbed (durable here and not absorbed yet), consumer (the slowest one)."},
		{Name: "strandline_cursor_lag_seconds", Kind: Gauge, Unit: Seconds, Labels: chainAnd("cursor"), Help: "Age of the oldest thing behind the cursor: absorbed (first sealed segment that is not), consumer (first local segment that the slowest has not read), rewritten (oldest slot that owes a settle), trimmed (slots condemned and not deleted). 0: nothing is."},
	}
}
