//go:build !unix

package usage

import "time"

// CPU is not known here.
func CPU() (used time.Duration, ok bool) { return 0, false }
