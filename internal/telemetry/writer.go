package telemetry

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/localtier"
	"github.com/strandline/strandline/localtier/wal"
	"github.com/strandline/strandline/segment"
)

// shardStates are the values of the label.
var shardStates = []string{
	word(localtier.StateServing), word(localtier.StateLeaseLost), word(localtier.StateFenced), word(localtier.StateHalted), word(localtier.StateClosed),
}

func word(s localtier.State) string { return strings.ReplaceAll(string(s), " ", "-") }

func (src *Sources) shards() []localtier.ShardStatus {
	if src.Writer == nil {
		return nil
	}
	w := src.Writer()
	if w == nil {
		return nil
	}
	return w.Status()
}

func (src *Sources) observeWriter(s sink, now time.Time) {
	for _, st := range src.shards() {
		epoch, shard := chainLabel(st.Chain)
		observeLog(s, &st, epoch, shard)
		observeShard(s, &st, now)
	}
	src.observeDisk(s)
	if src.OTLP == nil {
		return
	}
	c := src.OTLP()
	s.put("strandline_otlp_requests_total", float64(c.Taken), "taken")
	s.put("strandline_otlp_requests_total", float64(c.Partial), "partial")
	s.put("strandline_otlp_requests_total", float64(c.Refused), "refused")
	s.put("strandline_otlp_requests_total", float64(c.Later), "later")
	s.put("strandline_otlp_records_total", float64(c.Records), "taken")
	s.put("strandline_otlp_records_total", float64(c.Rejected), "rejected")
}

func chainLabel(c segment.Chain) (epoch, shard string) {
	return strconv.FormatUint(uint64(c.Epoch), 10), strconv.FormatUint(uint64(c.Shard), 10)
}

// observeLog is the local log of a shard.
func observeLog(s sink, st *localtier.ShardStatus, epoch, shard string) {
	m := &st.Log
	for _, x := range []struct {
		name string
		v    float64
	}{
		{"strandline_wal_appends_total", float64(m.Frames)},
		{"strandline_wal_rows_total", float64(m.Rows)},
		{"strandline_wal_appended_bytes_total", float64(m.Bytes)},
		{"strandline_wal_refused_total", float64(m.Refused)},
		{"strandline_wal_syncs_total", float64(m.Syncs)},
		{"strandline_wal_unflushed_bytes", float64(m.Unflushed)},
		{"strandline_wal_disk_bytes", float64(m.DiskBytes)},
		{"strandline_wal_spare_bytes", float64(m.SpareBytes)},
		{"strandline_wal_segment_count", float64(m.SegmentCount)},
		{"strandline_wal_checkpoint_segment", float64(m.Checkpoint.Segment)},
		{"strandline_wal_checkpoint_byte", float64(m.Checkpoint.Byte)},
		{"strandline_wal_recovery_seconds", m.Recovery.Seconds()},
		{"strandline_wal_corrupt_frames_total", float64(st.Corrupt)},
		{"strandline_wal_rollbacks_total", float64(m.Rollbacks)},
		{"strandline_wal_poisoned", float64(m.Poisonings)},
		{"strandline_wal_index_failures_total", float64(m.IndexFailures)},
	} {
		s.put(x.name, x.v, epoch, shard)
	}
	for _, e := range segmentEvents(m) {
		s.put("strandline_wal_segments_total", float64(e.n), epoch, shard, e.event)
	}
}

type segmentEvent struct {
	event string
	n     int64
}

func segmentEvents(m *wal.Metrics) []segmentEvent {
	return []segmentEvent{{"begun", m.Segments}, {"sealed", m.Seals}, {"removed", m.Removed}, {"adopted", m.Adopted}, {"recycled", m.Recycled}}
}

// observeShard is a shard as its owner sees it.
func observeShard(s sink, st *localtier.ShardStatus, now time.Time) {
	epoch, shard := chainLabel(st.Chain)
	s.oneOf("strandline_shard_state", func(v string) bool { return v == word(st.State) }, shardStates, epoch, shard)
	for _, x := range []struct {
		name string
		v    float64
	}{
		{"strandline_shard_term", float64(st.Term)},
		{"strandline_shard_next_seq", float64(st.NextSeq)},
		{"strandline_shard_lease_seconds", st.LeaseEnd.Sub(now).Seconds()},
		{"strandline_shard_unpublished_bytes", float64(st.UnpublishedBytes)},
		{"strandline_shard_unpublished_segments", float64(st.UnpublishedSegments)},
		{"strandline_shard_last_absorbed_timestamp_seconds", stamp(st.LastAbsorbed)},
		{"strandline_shard_owed_copies", float64(st.Owed)},
		{"strandline_consumers", float64(len(st.Consumers))},
	} {
		s.put(x.name, x.v, epoch, shard)
	}
	s.put("strandline_shard_hydrate_slots", float64(st.Hydrated), epoch, shard, "done")
	s.put("strandline_shard_hydrate_slots", float64(st.HydrateTotal), epoch, shard, "wanted")
	var slowest uint64
	for _, c := range st.Consumers {
		slowest = max(slowest, c.Lag)
	}
	s.put("strandline_cursor_lag_rows", float64(st.Unabsorbed), epoch, shard, "absorbed")
	s.put("strandline_cursor_lag_rows", float64(slowest), epoch, shard, "consumer")
	s.put("strandline_cursor_lag_seconds", age(now, st.UnabsorbedSince), epoch, shard, "absorbed")
	s.put("strandline_cursor_lag_seconds", age(now, st.Behind), epoch, shard, "consumer")
}

// observeDisk asks the file system; that is no I/O.
func (src *Sources) observeDisk(s sink) {
	if src.Disk == nil {
		return
	}
	s.put("strandline_quarantine_max_bytes", float64(src.Disk.QuarantineMax))
	s.put("strandline_disk_min_free_bytes", float64(max(src.Disk.MinFree, 0)))
	var shards int
	var rows uint64
	if src.Disk.Left != nil {
		shards, rows = src.Disk.Left()
	}
	s.put("strandline_left_behind_shards", float64(shards))
	s.put("strandline_left_behind_rows", float64(rows))
	if src.Writer != nil {
		if w := src.Writer(); w != nil {
			if n, err := w.Quarantined(); err == nil {
				s.put("strandline_quarantine_bytes", float64(n))
			}
		}
	}
	var st unix.Statfs_t
	if err := unix.Statfs(src.Disk.Dir, &st); err == nil { // one that does not answer has no numbers
		s.put("strandline_disk_free_bytes", float64(st.Bavail)*float64(st.Bsize))
		s.put("strandline_disk_size_bytes", float64(st.Blocks)*float64(st.Bsize))
	}
}
