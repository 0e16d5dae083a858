package deploycheck

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

// step is how often rules are evaluated and series have samples.
const step = 30 * time.Second

func newParser() parser.Parser { return parser.NewParser(parser.Options{}) }

func engine(t *testing.T) *promql.Engine {
	t.Helper()
	return promqltest.NewTestEngine(t, false, 5*time.Minute, 10_000_000)
}

// window evaluates an expression at every step of a window and returns how many of them had
// a result, and the last result.
func window(t *testing.T, e *promql.Engine, s storage.Queryable, expr string, from, to time.Time) (steps, hits int, last promql.Vector) {
	t.Helper()
	for at := from; !at.After(to); at = at.Add(step) {
		steps++
		q, err := e.NewInstantQuery(context.Background(), s, nil, expr, at)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		r := q.Exec(context.Background())
		if r.Err != nil {
			t.Fatalf("%s: %v", expr, r.Err)
		}
		switch v := r.Value.(type) {
		case promql.Vector:
			if len(v) > 0 {
				hits++
			}
			last = append(promql.Vector(nil), v...)
		case promql.Scalar:
			hits++
		default:
			t.Fatalf("%s is a %T", expr, v)
		}
		q.Close()
	}
	return steps, hits, last
}

// moment of a series that began at 0.
func moment(d time.Duration) time.Time { return time.Unix(0, 0).UTC().Add(d) }

// load is series as promqltest has them: `name{label="x"} 0+1x60`, one a line.
func load(lines ...string) string {
	text := fmt.Sprintf("load %v\n", step)
	for _, l := range lines {
		text += "  " + l + "\n"
	}
	return text
}
