package orphan

import (
	"context"
	"time"

	"github.com/strandline/strandline/catalog"
)

// KeyBurner is the reap's verb.
type KeyBurner interface {
	BurnKey(ctx context.Context, keys []string) error
}

// IntentBurner is the judge's verb.
type IntentBurner interface {
	BurnIntent(ctx context.Context, key string) error
}

// Burn marks the keys as never to be used again and resolves their reap-checks.
// Their last look is due catalog.BurnDelay later.
func Burn(ctx context.Context, cat KeyBurner, dead []Dead) error {
	if len(dead) == 0 {
		return nil
	}
	keys := make([]string, len(dead))
	for i, d := range dead {
		keys[i] = d.key
	}
	return cat.BurnKey(ctx, keys)
}

// BurnIntent marks the judged key likewise.
func BurnIntent(ctx context.Context, cat IntentBurner, d Dead) error {
	return cat.BurnIntent(ctx, d.key)
}

// lookDue is how long a burned key's last look has to wait yet. It is pure. A
// request that was sent before the delete may land until then.
func lookDue(now time.Time, intent catalog.Intent) time.Duration {
	return max(0, intent.Changed.Add(catalog.BurnDelay).Sub(now))
}
