package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/strandline/strandline/bench/peer"
)

// page collects Markdown; write errors come at the end.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// table writes a header and rows; the first column is text, the others numbers.
func (p *page) table(rows [][]string) {
	for i, cells := range rows {
		p.line("| %s |", strings.Join(cells, " | "))
		if i == 0 {
			p.line("|---|%s", strings.Repeat("---:|", len(cells)-1))
		}
	}
	p.line("")
}

func (r *report) markdown(w io.Writer) error {
	p := &page{}
	r.head(p)
	for _, m := range metrics() {
		r.cells(p, m)
	}
	r.standings(p)
	r.goals(p)
	r.notes(p)
	_, err := io.WriteString(w, p.String())
	return err
}

func (r *report) head(p *page) {
	m, s := r.Machine, r.Settings
	p.line("## The log beside its peers\n")
	p.line("%s, %d cores, %.0f GiB; %s; %s; %s on %s%s; load %s before, %s after.\n",
		m.CPU, m.Cores, m.MemoryGiB, m.Kernel, m.Go, m.FileSystem, m.Mount, cacheText(m.WriteCache), m.LoadBefore, m.LoadAfter)
	p.line("Medians of %d interleaved repetitions of %s s after %s s of warm-up, each in a process of its own; closed loop, one record a call, "+
		"durable acknowledgement, incompressible records, segments of %d MiB. A ratio is the median of the ratios to the fastest durable peer of "+
		"the same repetition. The whole run took %.0f s.\n", s.Repetitions, short(s.Seconds), short(s.WarmSeconds), s.SegmentMiB, r.Seconds)
	if len(s.Only) == 0 {
		p.line("Peers far behind in every cell (tidwall/wal, bbolt, SQLite, JetStream) are measured with 1 KiB records only, and with a quarter of the log for replay.\n")
	}
}

func cacheText(s string) string {
	if s == "" {
		return ""
	}
	return ", " + s
}

// metric is one table over all cells.
type metric struct {
	title string
	text  func(row) string
}

func metrics() []metric {
	return []metric{
		{"Rows a second (ratio to the best peer)", func(x row) string {
			return fmt.Sprintf("%s (%s)", rate(x.Sample.RowsPerSecond), short(x.Ratio))
		}},
		{"p50, µs (ratio to that peer's)", func(x row) string {
			return fmt.Sprintf("%s (%s)", short(x.Sample.P50Micros), short(x.P50Ratio))
		}},
		{"p99, µs", func(x row) string { return short(x.Sample.P99Micros) }},
		{"p50 by a bare write + fdatasync (over written blocks / growing)", func(x row) string {
			if x.BareRatio == 0 {
				return ""
			}
			return short(x.BareRatio) + " / " + short(x.GrowRatio)
		}},
		{"Heap allocations a row", func(x row) string { return short(x.Sample.AllocsPerRow) }},
		{"Processor time a row, µs", func(x row) string { return short(x.Sample.CPUMicrosPerRow) }},
		{"Bytes of pages dirtied by byte appended (`write_bytes`: not what the disk got, least of all where files are overwritten)", func(x row) string {
			return short(x.Sample.WrittenPerByte)
		}},
	}
}

// cells is a table of one metric; columns that it says nothing in are left out.
func (r *report) cells(p *page, m metric) {
	text := map[string]map[cell]string{}
	var columns []cell
	for _, x := range r.Append {
		s := m.text(x)
		if s == "" {
			continue
		}
		if text[x.Peer] == nil {
			text[x.Peer] = map[cell]string{}
		}
		text[x.Peer][x.Cell] = s
		if n := len(columns); n == 0 || columns[n-1] != x.Cell {
			columns = append(columns, x.Cell)
		}
	}
	if len(columns) == 0 {
		return
	}
	header := []string{""}
	for _, c := range columns {
		header = append(header, fmt.Sprintf("%s × %d", size(c.RecordBytes), c.Producers))
	}
	rows := [][]string{header}
	for _, q := range r.Settings.peers() {
		if text[q.Name] == nil {
			continue
		}
		cells := []string{named(q)}
		for _, c := range columns {
			cells = append(cells, or(text[q.Name][c], "–"))
		}
		rows = append(rows, cells)
	}
	p.line("### %s\n", m.title)
	p.table(rows)
}

func (r *report) standings(p *page) {
	if len(r.Standing) == 0 {
		return
	}
	rows := [][]string{{"", "MiB", "filled, MB/s", "open for append, ms", "its peak, MiB", "replay, MB/s", "by the best peer's", "by prometheus wlog's", "its peak, MiB"}}
	for _, q := range r.Settings.peers() {
		for _, x := range r.Standing {
			if x.Peer != q.Name {
				continue
			}
			open := short(x.OpenMillis)
			if q.NoOpen {
				open = "–"
			}
			rows = append(rows, []string{
				named(q), fmt.Sprint(x.Bytes >> 20), short(x.FillMBps), open, short(x.OpenPeakMiB),
				short(x.ReplayMBps), short(x.Ratio), short(x.PromRatio), short(x.PeakMiB),
			})
		}
	}
	p.line("### Open and replay of a closed log of 1 KiB records, files in the page cache (medians of %d)\n", r.Settings.Replays)
	p.table(rows)
}

func (r *report) goals(p *page) {
	rows := [][]string{{"expected of the whole shard log", "bound", "strandline shard", "strandline wal", "holds"}}
	for _, g := range r.Goals {
		if g.Shard == 0 && g.WAL == 0 {
			continue
		}
		holds := "no"
		if g.Holds {
			holds = "yes"
		}
		rows = append(rows, []string{g.Text, g.Bound, short(g.Shard), short(g.WAL), holds})
	}
	if len(rows) == 1 {
		return
	}
	p.line("### Expectations\n")
	p.table(rows)
}

func (r *report) notes(p *page) {
	p.line("### How each is set\n")
	for _, q := range r.Settings.peers() {
		version := r.Machine.Versions[q.Module]
		if q.Role != peer.Rival {
			version = ""
		}
		p.line("- **%s**%s: %s.", q.Name, lead(" ", version), q.Note)
	}
	p.line("")
	for _, f := range r.Failures {
		p.line("- FAILED: %s of %s, %s × %d, repetition %d: %s", f.Job, f.Peer, size(f.Cell.RecordBytes), f.Cell.Producers, f.Repetition+1, f.Error)
	}
}

func named(q peer.Peer) string {
	if q.Role == peer.Ours {
		return "**" + q.Name + "**"
	}
	return q.Name
}

func lead(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func size(bytes int) string {
	if bytes >= 1024 && bytes%1024 == 0 {
		return fmt.Sprintf("%d KiB", bytes/1024)
	}
	return fmt.Sprintf("%d B", bytes)
}

// rate shortens rows a second.
func rate(v float64) string {
	if v >= 1e4 {
		return fmt.Sprintf("%.1f k", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}

// short gives three digits or so.
func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
