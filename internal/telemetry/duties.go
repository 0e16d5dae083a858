package telemetry

import (
	"slices"

	"github.com/strandline/strandline/auditor"
)

// observeDuties is an auditor's summary.
func (src *Sources) observeDuties(s sink) {
	if src.Auditor == nil {
		return
	}
	sum := src.Auditor()
	for _, name := range auditor.DutyNames() { // those that have not run yet, too: a rate begins at 0
		d := sum.Duties[name]
		observeDuty(s, name, &d)
	}
	s.put("strandline_lost_objects", float64(sum.Lost))
	s.put("strandline_auditors_live", float64(sum.Auditors))
	s.oneOf("strandline_deletes_held", func(r string) bool { return slices.Contains(sum.Holds, r) }, auditor.Holds())
	held := src.RewritingHeld != nil && src.RewritingHeld() != ""
	s.put("strandline_rewriting_held", truth(held))
	for state, n := range sum.Garbage {
		s.put("strandline_garbage_bytes", float64(n), state)
	}
	var budget auditor.BudgetSummary
	if sum.Budget != nil {
		budget = *sum.Budget
	}
	s.put("strandline_budget_waited_seconds_total", budget.WaitedSeconds)
	s.put("strandline_budget_share", budget.BytesPerSecond, "bytes")
	s.put("strandline_budget_share", budget.Requests, "requests")
}

func observeDuty(s sink, name string, d *auditor.DutySummary) {
	s.put("strandline_duty_runs_total", float64(d.Completed), name, "completed")
	s.put("strandline_duty_runs_total", float64(d.Started-d.Completed), name, "failed")
	s.put("strandline_duty_errors_total", float64(d.Failed), name)
	s.put("strandline_duty_items_total", float64(d.Items), name)
	s.put("strandline_duty_moved_bytes_total", float64(d.Through), name, "process")
	s.put("strandline_duty_moved_bytes_total", float64(d.ServerSide), name, "server-side")
	s.put("strandline_duty_output_bytes_total", float64(d.Bytes), name)
	s.put("strandline_duty_last_success_timestamp_seconds", stamp(d.LastSuccess), name)
	s.put("strandline_duty_oldest_debt_seconds", d.DebtAge, name)
	s.put("strandline_duty_markers", float64(d.Due), name, "due")
	s.put("strandline_duty_markers", float64(d.Standing-d.Due), name, "waiting")
	for outcome, n := range d.Outcomes {
		s.put("strandline_duty_outcomes_total", float64(n), name, outcome)
	}
	for reason, n := range d.Kept {
		s.put("strandline_duty_kept_total", float64(n), name, reason)
	}
	for op, n := range d.Requests {
		s.put("strandline_duty_requests_total", float64(n), name, op)
	}
}
