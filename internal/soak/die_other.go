//go:build unix && !linux

package soak

import "syscall"

// dieWithUs can do nothing here: a killed test binary leaves its children behind.
func dieWithUs() *syscall.SysProcAttr { return nil }
