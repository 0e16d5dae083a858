package main

// goal is an expectation of ours, held against the whole shard log, or against the log
// alone where it is of a thing that the log alone does.
type goal struct {
	Text  string
	OfLog bool
	Least float64 // 0: there is none
	Most  float64 // 0: there is none
	Value func(r *report, peer string) float64
}

// judged is a goal and what was reached; a value of 0 was not measured.
type judged struct {
	Text  string
	Bound string
	WAL   float64
	Shard float64
	Holds bool
}

func inCell(bytes, producers int, of func(row) float64) func(*report, string) float64 {
	return func(r *report, peer string) float64 {
		for _, x := range r.Append {
			if x.Peer == peer && x.Cell == (cell{bytes, producers}) {
				return of(x)
			}
		}
		return 0
	}
}

func standingLog(of func(standingRow) float64) func(*report, string) float64 {
	return func(r *report, peer string) float64 {
		for _, x := range r.Standing {
			if x.Peer == peer {
				return of(x)
			}
		}
		return 0
	}
}

// goals are those that the project set itself.
func goals() []goal {
	byRate := func(x row) float64 { return x.Ratio }
	byP50 := func(x row) float64 { return x.P50Ratio }
	allocs := func(x row) float64 { return x.Sample.AllocsPerRow }
	const kib, large = 1 << 10, 64 << 10
	return []goal{
		{Text: "1 KiB × 1, rows/s by the best peer's", Least: 1.2, Value: inCell(kib, 1, byRate)},
		{Text: "1 KiB × 16, rows/s by the best peer's", Least: 2, Value: inCell(kib, 16, byRate)},
		{Text: "1 KiB × 16, p50 by that peer's", Most: 0.5, Value: inCell(kib, 16, byP50)},
		{Text: "1 KiB × 256, rows/s by the best peer's", Least: 1.5, Value: inCell(kib, 256, byRate)},
		{Text: "64 KiB × 1, rows/s by the best peer's", Least: 1.4, Value: inCell(large, 1, byRate)},
		{Text: "64 KiB × 16, rows/s by the best peer's", Least: 1.4, Value: inCell(large, 16, byRate)},
		{Text: "64 KiB × 256, rows/s by the best peer's", Least: 1.4, Value: inCell(large, 256, byRate)},
		{Text: "1 KiB × 1, p50 by that of a bare write + fdatasync over written blocks", Most: 1.2, Value: inCell(kib, 1, func(x row) float64 { return x.BareRatio })},
		{Text: "replay of the log alone, warm, by prometheus wlog's", OfLog: true, Least: 1.2, Value: standingLog(func(x standingRow) float64 { return x.PromRatio })},
		{Text: "open for append, ms", Most: 20, Value: standingLog(func(x standingRow) float64 { return x.OpenMillis })},
		{Text: "allocations a row, 1 KiB × 16", Most: 0.5, Value: inCell(kib, 16, allocs)},
		{Text: "allocations a row, 1 KiB × 256", Most: 0.1, Value: inCell(kib, 256, allocs)},
	}
}

// judge holds the run against the goals. What was not measured holds nothing.
func judge(r *report) (out []judged) {
	for _, g := range goals() {
		j := judged{Text: g.Text, WAL: g.Value(r, "strandline wal"), Shard: g.Value(r, "strandline shard")}
		reached := j.Shard
		if g.OfLog {
			reached = j.WAL
		}
		if g.Least > 0 {
			j.Bound, j.Holds = "≥ "+short(g.Least), reached >= g.Least
		} else {
			j.Bound, j.Holds = "≤ "+short(g.Most), reached > 0 && reached <= g.Most
		}
		out = append(out, j)
	}
	return out
}
