//go:build faults && !linux

package chaos

import "syscall"

func withUs(attr *syscall.SysProcAttr) *syscall.SysProcAttr { return attr }
