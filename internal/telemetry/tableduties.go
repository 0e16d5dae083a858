package telemetry

// dutyTable is what auditors do, and what they see of the deployment. Every auditor tells
// of the same deployment: take the max over them, not the sum.
func dutyTable() []Group {
	from := []string{Up, Auditor}
	return []Group{
		{Title: "Duties", From: from, Metrics: []Metric{
			{Name: "strandline_duty_runs_total", Kind: Counter, Unit: None, Labels: []string{"duty", "outcome"}, Help: "Passes that had something to do: completed, failed."},
			{Name: "strandline_duty_errors_total", Kind: Counter, Unit: None, Labels: []string{"duty"}, Help: "Passes and markers that ended in an error; each is tried again."},
			{Name: "strandline_duty_seconds", Kind: Histogram, Unit: Seconds, Labels: []string{"duty", "outcome"}, Help: "How long such passes took: worked, failed.", made: recorded},
			{Name: "strandline_duty_items_total", Kind: Counter, Unit: None, Labels: []string{"duty"}, Help: "Markers, batches, objects: what the duty got through."},
			{Name: "strandline_duty_outcomes_total", Kind: Counter, Unit: None, Labels: []string{"duty", "outcome"}, Help: "Items, and parts of items, by what became of them."},
			{Name: "strandline_duty_kept_total", Kind: Counter, Unit: None, Labels: []string{"duty", "reason"}, Help: "What stayed where it is, by reason.", eventual: true},
			{Name: "strandline_duty_moved_bytes_total", Kind: Counter, Unit: Bytes, Labels: []string{"duty", "way"}, Help: "Bytes moved: through this process (process), or within the store (server-side)."},
			{Name: "strandline_duty_output_bytes_total", Kind: Counter, Unit: Bytes, Labels: []string{"duty"}, Help: "Bytes of the objects it made; of reap-check: that it deleted."},
			{Name: "strandline_duty_requests_total", Kind: Counter, Unit: None, Labels: []string{"duty", "op"}, Help: "Requests to the stores during its passes; duties at work at once count each other's."},
			{Name: "strandline_duty_last_success_timestamp_seconds", Kind: Gauge, Unit: Seconds, Labels: []string{"duty"}, Help: "Begin of its last pass without an error, one that found nothing to do included; 0: none yet."},
			{Name: "strandline_duty_oldest_debt_seconds", Kind: Gauge, Unit: Seconds, Labels: []string{"duty"}, Help: "How long its oldest marker has been due, by the database's clock; 0: none is."},
			{Name: "strandline_duty_markers", Kind: Gauge, Unit: None, Labels: []string{"duty", "state"}, Help: "Markers that stand: due, waiting. Those of trim-check, reap-check and orphan wait for a grace."},
		}},
		{Title: "Auditors", From: from, Metrics: []Metric{
			{Name: "strandline_auditors_live", Kind: Gauge, Unit: None, Help: "Auditors whose lease lives."},
			{Name: "strandline_deletes_held", Kind: Gauge, Unit: None, Labels: []string{"reason"}, Help: "1 while this auditor deletes nothing: clock, bucket-not-ours, rolled-back, unread."},
			{Name: "strandline_rewriting_held", Kind: Gauge, Unit: None, Help: "1 while up settles, merges and fills up nothing, since its bucket is on the disk of --dir and less than --min-free-disk is left."},
			{Name: "strandline_garbage_bytes", Kind: Gauge, Unit: Bytes, Labels: []string{"state"}, Help: "Dead bytes that this auditor knows of: grace (they wait for their delete), inner (in objects that have live rows, too)."},
			{Name: "strandline_lost_objects", Kind: Gauge, Unit: None, Help: "Objects that live refs name and no bucket has, as this auditor met them and looked last. Anything above 0 is a loss of data."},
			{Name: "strandline_budget_waited_seconds_total", Kind: Counter, Unit: Seconds, Help: "Time that movers waited for their share of --budget-bytes and --budget-requests, summed over them."},
			{Name: "strandline_budget_share", Kind: Gauge, Unit: None, Labels: []string{"of"}, Help: "This auditor's share a second: bytes, requests; 0: no bound."},
		}},
		{Title: "The deployment, from its catalog", From: from, Metrics: []Metric{
			{Name: "strandline_chains", Kind: Gauge, Unit: None, Labels: []string{"state"}, Help: "Chains by whether somebody owns them: owned, ownerless (the lease is over), closed."},
			{Name: "strandline_transit_bytes", Kind: Gauge, Unit: Bytes, Labels: chainLabels, Help: "Slots that stand and owe a settle. Chains that are through with everything are left out."},
			{Name: "strandline_cursor_lag_slots", Kind: Gauge, Unit: None, Labels: chainAnd("cursor"), Help: "Slots behind absorbed_end: rewritten, condemned, trimmed."},
			{Name: "strandline_chain_retained_rows", Kind: Gauge, Unit: None, Labels: chainLabels, Help: "Rows above the watermark: what retention keeps."},
			{Name: "strandline_chains_read_timestamp_seconds", Kind: Gauge, Unit: Seconds, Help: "When these were read; they are as old as that."},
		}},
	}
}
