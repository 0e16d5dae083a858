package telemetry

import (
	"fmt"
	"strings"
)

// DocRow is a metric as docs/telemetry.md has it.
func DocRow(g *Group, m *Metric) string {
	labels := "–"
	if len(m.Labels) > 0 {
		labels = strings.Join(m.Labels, ", ")
	}
	from := strings.Join(g.From, ", ")
	if m.optional {
		from += " (where it is configured)"
	}
	if m.eventual {
		from += " (once there was some)"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |", m.Name, m.Kind, unitWord(m.Unit), labels, m.Help, from)
}

// DocTable is the whole of it.
func DocTable() string {
	var b strings.Builder
	for _, g := range Table() {
		fmt.Fprintf(&b, "### %s\n\n| name | type | unit | labels | meaning | served by |\n|---|---|---|---|---|---|\n", g.Title)
		for i := range g.Metrics {
			b.WriteString(DocRow(&g, &g.Metrics[i]))
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func unitWord(u Unit) string {
	switch u {
	case Bytes:
		return "bytes"
	case Seconds:
		return "seconds"
	default:
		return "–"
	}
}
