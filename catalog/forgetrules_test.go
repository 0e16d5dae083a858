package catalog

import (
	"errors"
	"testing"
	"time"

	"github.com/strandline/strandline/segment"
)

// TestForgetIntent: a burned key's row goes a day after the delete at the earliest, and
// never while its key may be derived again, or nobody knows whether it may.
func TestForgetIntent(t *testing.T) {
	stream, pack := segment.StreamKey("a", 1, 10, 3), segment.PackKey(segment.Chain{Epoch: 1}, 2, 3, 0)
	boom := errors.New("boom")
	for name, x := range map[string]struct {
		key   string
		state IntentState
		after time.Duration
		asks  string
		says  bool
		fails error
		gone  bool
		again time.Duration
	}{
		"a day after":        {stream, IntentBurned, BurnDelay, "stream", false, nil, true, BurnDelay},
		"a pack, too":        {pack, IntentBurned, BurnDelay, "pack", false, nil, true, BurnDelay},
		"derivable":          {stream, IntentBurned, BurnDelay, "stream", true, nil, false, BurnDelay},
		"a pack derivable":   {pack, IntentBurned, BurnDelay, "pack", true, nil, false, BurnDelay},
		"within the day":     {stream, IntentBurned, BurnDelay - 5, "", false, nil, false, 5},
		"unknown shape":      {"x/y", IntentBurned, 9 * BurnDelay, "", false, nil, false, BurnDelay},
		"look-up that fails": {stream, IntentBurned, BurnDelay, "stream", false, boom, false, BurnDelay},
		"only condemned":     {stream, IntentCondemned, BurnDelay, "", false, ErrConflict, false, 0},
		"standing":           {stream, IntentStanding, BurnDelay, "", false, ErrConflict, false, 0},
	} {
		asked := ""
		ask := func(kind string) func(segment.Key) (bool, error) {
			return func(segment.Key) (bool, error) {
				asked += kind
				return x.says, x.fails
			}
		}
		gone, again, err := ForgetIntent(&Intent{Key: x.key, State: x.state, Changed: t0}, t0.Add(x.after), Deriving{ask("stream"), ask("pack")})
		if gone != x.gone || again != x.again || !errors.Is(err, x.fails) || asked != x.asks {
			t.Errorf("%s: gone %v, again in %v, asked %q: %v", name, gone, again, asked, err)
		}
	}
}
