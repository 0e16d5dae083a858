// Package child runs the processes of tests that break a deployment of real ones, and of
// the servers that they run on.
//
//	start.go     Start: a child that does not outlive us; die_*.go how the system sees to that
//	process.go   Process: one with a log; signals, the end, the exit code
//	waiting.go   Poll and Pause
//
// Contract. Only a child's own id is ever signalled. A child is reaped whatever becomes of it:
// its goroutine waits for it, and closes what Start returned. On Linux a child ends with us,
// also if we are killed; elsewhere a killed test binary leaves it behind.
package child
