//go:build unix && !linux

package child

import "syscall"

// dieWithUs can do nothing here: a killed test binary leaves its children behind.
func dieWithUs() *syscall.SysProcAttr { return nil }
