package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// usage is what the process has used so far.
type usage struct {
	mallocs uint64
	cpu     time.Duration // user and system
	written int64         // bytes of pages made dirty, by /proc/self/io
}

func usageNow() (u usage, err error) {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return u, err
	}
	u.cpu = time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	if u.written, err = written(); err != nil {
		return u, err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.mallocs = m.Mallocs
	return u, nil
}

func written() (int64, error) {
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			return strconv.ParseInt(strings.TrimSpace(n), 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/self/io has no write_bytes")
}
