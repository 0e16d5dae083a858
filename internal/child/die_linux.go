package child

import "syscall"

// dieWithUs has the kernel end the child when we are gone, a killed test binary included.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
