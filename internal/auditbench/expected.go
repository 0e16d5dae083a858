package auditbench

// The figures that were aimed at.
const (
	leastSettleMB   = 150  // raw MB/s of zstd slots, on two cores
	leastServerSide = 0.95 // of what gc moves of large chunks
	mostStreamRatio = 1.5  // requests per GB at the most streams, over those at the fewest
	leastReapRatio  = 0.8  // of the store's own bulk delete
	mostDebtRatio   = 1.3  // at ten times the standing objects
)

// expected holds what was measured against what was aimed at.
func expected(r *Report, o *Options) []Expected {
	var out []Expected
	least := func(figure, unit string, bound, measured float64, binding bool) {
		out = append(out, Expected{Figure: figure, Unit: unit, Least: bound, Measured: measured, Reached: measured >= bound, Binding: binding})
	}
	most := func(figure, unit string, bound, measured float64, binding bool) {
		out = append(out, Expected{Figure: figure, Unit: unit, Most: bound, Measured: measured, Reached: measured <= bound, Binding: binding})
	}
	full := !o.Quick
	if s := r.Settle; s != nil {
		least("settle of zstd slots", "raw MB/s", leastSettleMB, s.RawMBPerSecond, full && r.Cores >= 2)
	}
	for _, m := range r.Moves {
		if m.Policy == "gc" {
			least("gc of large chunks, moved by the store itself", "share of bytes", leastServerSide, m.ServerSideShare, full)
		}
	}
	if n := len(r.Streams); n > 1 {
		few, many := r.Streams[0], r.Streams[n-1]
		most("requests per settled GB, most streams over fewest", "ratio", mostStreamRatio, over(many.RequestsPerGB, few.RequestsPerGB), full)
	}
	if p := r.Reap; p != nil {
		least("the reap's delete beside the store's bulk delete", "ratio", leastReapRatio, p.DeleteRatio, full)
		least("the reap's second pass beside the store's bulk delete", "ratio", leastReapRatio, p.ReapRatio, full)
	}
	if d := r.Debt; d != nil {
		most("a debt's requests at 10x the standing objects", "ratio", mostDebtRatio, d.Ratios.Requests, full)
		most("a debt's catalog verbs at 10x the standing objects", "ratio", mostDebtRatio, d.Ratios.Verbs, full)
		most("a debt's seconds at 10x the standing objects", "ratio", mostDebtRatio, d.Ratios.Seconds, full)
	}
	return out
}
