//go:build faults

package chaos

import "syscall"

// withUs makes a process stop with the thread that started it.
func withUs(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Pdeathsig = syscall.SIGKILL
	return attr
}
