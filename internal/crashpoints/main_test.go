package crashpoints_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/strandline/strandline/segment"
)

func TestMain(m *testing.M) {
	// Coders are kept for the whole process: one that was made in one bubble of virtual
	// time must not be waited for in another.
	const coders = 32
	segment.KeepCoders(coders)
	goleak.VerifyTestMain(m)
}
