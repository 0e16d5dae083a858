//go:build unix && !linux

package pgserver

import (
	"os/exec"
	"strconv"
	"strings"
)

// childrenOf lists a process's children; none if ps does not run: a server's children
// then end by themselves when they see that it is gone.
func childrenOf(parent int) []int {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		return nil
	}
	var children []int
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) != 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(fields[0]); err == nil {
			children = append(children, pid)
		}
	}
	return children
}

// gone says that a process ended; one that nobody waited for yet has ended, too.
func gone(pid int) bool {
	out, _ := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output() // fails where there is no such process
	state := strings.TrimSpace(string(out))
	return state == "" || strings.HasPrefix(state, "Z")
}
