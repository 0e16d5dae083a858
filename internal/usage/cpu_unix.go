//go:build unix

package usage

import (
	"syscall"
	"time"
)

// CPU is what this process has used so far, in user and system mode. ok is false
// where the system does not tell.
func CPU() (used time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
