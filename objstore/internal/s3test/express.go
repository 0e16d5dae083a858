//go:build unix

package s3test

import (
	"testing"

	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/storetest"
)

// Express runs the conformance suite, and what of Real asks nothing of a real server,
// against a directory bucket. to gives an empty bucket.
func Express(t *testing.T, open Opener, to func(t *testing.T, prefix string) Target) {
	t.Run("Conformance", func(t *testing.T) {
		d := mustOpen(t, open, to(t, "tier"))
		storetest.Run(t, func(*testing.T) objstore.Driver { return d })
	})
	t.Run("WholeBucket", func(t *testing.T) {
		d := mustOpen(t, open, to(t, ""))
		storetest.Run(t, func(*testing.T) objstore.Driver { return d })
	})
	t.Run("Race", func(t *testing.T) { race(t, open, to(t, "tier")) })
	t.Run("DamagedBody", func(t *testing.T) { damagedBody(t, open, to(t, "tier")) })
	t.Run("LargeLoser", func(t *testing.T) { largeLoser(t, open, to(t, "tier")) })
}
