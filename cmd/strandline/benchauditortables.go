package main

import (
	"fmt"
	"strings"

	"github.com/strandline/strandline/internal/auditbench"
)

func (a *app) printAuditorBench(r auditbench.Report) error {
	for _, rows := range [][][]string{settleRows(r.Settle), moveRows(r.Moves), streamRows(r.Streams), reapRows(r.Reap), debtRows(r.Debt), expectedRows(r.Expected)} {
		if len(rows) == 0 {
			continue
		}
		if err := table(a.out, rows); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.out); err != nil {
			return err
		}
	}
	notes := append([]string{fmt.Sprintf("%s, %d cores, medians of %d rounds, peaks of all; MB and GB are decimal, of raw rows.", r.Store, r.Cores, r.Rounds)}, r.Notes...)
	_, err := fmt.Fprintln(a.out, strings.Join(notes, "\n"))
	return err
}

func memory(m auditbench.Memory) []string {
	return []string{bytesText(m.PeakHeapBytes), bytesText(m.PeakResidentBytes)}
}

func settleRows(s *auditbench.Settle) [][]string {
	if s == nil {
		return nil
	}
	return [][]string{
		{"settle", "raw", "stored", "outputs", "raw MB/s", "rows/s", "CPU s", "CPU s/GB", "PUT-like", "GET", "peak heap", "peak resident"},
		append([]string{
			num(s.Slots) + " slots", bytesText(s.RawBytes), bytesText(s.StoredBytes), num(s.Outputs), figure(s.RawMBPerSecond, 1),
			countText(int64(s.RowsPerSecond)), figure(s.CPUSeconds, 2), figure(s.CPUSecondsPerRawGB, 2), num(s.PutLike), num(s.Gets),
		}, memory(s.Memory)...),
	}
}

func moveRows(moves []auditbench.Move) [][]string {
	if len(moves) == 0 {
		return nil
	}
	rows := [][]string{{"rewrite", "stored", "through us", "by the store", "share", "stored MB/s", "CPU s", "PUT-like", "GET", "peak heap", "peak resident"}}
	for _, m := range moves {
		rows = append(rows, append([]string{
			m.Policy, bytesText(m.Bytes), bytesText(m.ThroughBytes), bytesText(m.ServerSideBytes), percent(m.ServerSideShare),
			figure(m.MBPerSecond, 1), figure(m.CPUSeconds, 2), num(m.PutLike), num(m.Gets),
		}, memory(m.Memory)...))
	}
	return rows
}

func streamRows(list []auditbench.Streams) [][]string {
	if len(list) == 0 {
		return nil
	}
	rows := [][]string{{
		"streams", "batches", "raw", "objects", "PUT-like/GB", "GET/GB", "requests/GB", "of tail-fill PUT, GET", "of pack-merge PUT, GET", "raw MB/s", "peak heap", "peak resident",
	}}
	for _, s := range list {
		rows = append(rows, append([]string{
			countText(int64(s.Streams)), num(s.Batches), bytesText(s.RawBytes), num(s.Objects), figure(s.PutLikePerGB, 1), figure(s.GetsPerGB, 1), figure(s.RequestsPerGB, 1),
			fmt.Sprintf("%d: %d, %d", s.TailFills, s.FillPutLike, s.FillGets), fmt.Sprintf("%d: %d, %d", s.PackMerges, s.MergePutLike, s.MergeGets),
			figure(s.RawMBPerSecond, 1),
		}, memory(s.Memory)...))
	}
	return rows
}

func reapRows(r *auditbench.Reap) [][]string {
	if r == nil {
		return nil
	}
	return [][]string{
		{"reap", "probes/s", "confirms/s", "reaps/s", "bare deletes/s", "ratio: delete", "second pass", "both passes", "GET/object", "verbs/object", "CPU s", "peak heap", "peak resident"},
		append([]string{
			countText(int64(r.Objects)) + " objects", figure(r.ProbesPerSecond, 0), figure(r.ConfirmsPerSec, 0), figure(r.ReapsPerSecond, 0),
			figure(r.BareDeletesPerSecond, 0) + " (" + r.BareName + ")", figure(r.DeleteRatio, 2), figure(r.ReapRatio, 2), figure(r.TwoPassesRatio, 2),
			figure(r.Gets, 2), figure(r.Verbs, 2), figure(r.CPUSeconds, 2),
		}, memory(r.Memory)...),
	}
}

func debtRows(d *auditbench.Debt) [][]string {
	if d == nil {
		return nil
	}
	rows := [][]string{{"debt among", "requests", "verbs", "seconds", "CPU s", "peak heap", "peak resident"}}
	for _, p := range []auditbench.DebtPaid{d.Few, d.Many} {
		rows = append(rows, append([]string{
			countText(int64(p.StandingObjects)) + " objects", figure(p.Requests, 0), figure(p.Verbs, 0), figure(p.Seconds, 3), figure(p.CPUSeconds, 3),
		}, memory(p.Memory)...))
	}
	return append(rows, []string{"ratio", figure(d.Ratios.Requests, 2), figure(d.Ratios.Verbs, 2), figure(d.Ratios.Seconds, 2), figure(d.Ratios.CPUSeconds, 2), "", ""})
}

func expectedRows(list []auditbench.Expected) [][]string {
	if len(list) == 0 {
		return nil
	}
	rows := [][]string{{"expected", "bound", "measured", ""}}
	for _, e := range list {
		bound := "at least " + figure(e.Least, 2)
		if e.Most > 0 {
			bound = "at most " + figure(e.Most, 2)
		}
		fate := "not reached"
		switch {
		case !e.Binding:
			fate = "sizes too small to say"
		case e.Reached:
			fate = "reached"
		}
		rows = append(rows, []string{e.Figure, bound + " " + e.Unit, fmt.Sprintf("%.2f", e.Measured), fate})
	}
	return rows
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
