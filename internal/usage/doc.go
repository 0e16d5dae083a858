// Package usage tells what this process uses while something is measured: CPU seconds,
// the most that the Go heap held, the most that was resident.
//
//	cpu_*.go           CPU: user and system time so far
//	memory.go          WatchHeap, WatchResident: the most above the beginning
//	resident_*.go      what is resident now
//
// What a system does not tell is reported as unknown, never as nothing. It measures this
// process only: a store or a database of another process is not in it.
package usage
