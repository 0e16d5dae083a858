//go:build unix && !linux

package realstore

import "syscall"

// dieWithUs can do nothing here: a killed test binary leaves its server behind.
func dieWithUs() *syscall.SysProcAttr { return nil }
