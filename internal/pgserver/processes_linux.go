package pgserver

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// childrenOf lists a process's children.
func childrenOf(parent int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is ours and well-formed
	var children []int
	for _, path := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if _, ppid := statOf(pid); ppid == parent {
			children = append(children, pid)
		}
	}
	return children
}

// gone says that a process ended; one that nobody waited for yet has ended, too.
func gone(pid int) bool {
	state, _ := statOf(pid)
	return state == 0 || state == 'Z' || state == 'X'
}

// statOf reads a process's state and parent; zeros if there is none. The name in between
// stands in brackets and may hold anything.
func statOf(pid int) (state byte, parent int) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, 0
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(string(fields[1])) // the kernel writes a number
	return fields[0][0], parent
}
