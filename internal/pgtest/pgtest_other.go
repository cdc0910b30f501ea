//go:build !linux

package pgtest

import "syscall"

// sysProcAttr has a server run as another user. Only Linux can also end it with its parent,
// so a test run that is killed may leave a server behind.
func sysProcAttr(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as}
}
