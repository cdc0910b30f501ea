package sqlitestore

import (
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

var getDriveType = syscall.NewLazyDLL("kernel32.dll").NewProc("GetDriveTypeW")

// fileSystem names the network share of a path: a UNC path, or a drive that stands for one.
func fileSystem(path string) string {
	volume := filepath.VolumeName(path)
	local := strings.TrimPrefix(volume, `\\?\`)
	switch {
	case strings.HasPrefix(local, `UNC\`), strings.HasPrefix(local, `\\`) && !strings.HasPrefix(local, `\\.\`):
		return "SMB"
	case len(local) != 2:
		return ""
	}
	root, err := syscall.UTF16PtrFromString(local + `\`)
	if err != nil || getDriveType.Find() != nil {
		return ""
	}
	const remote = 4
	if kind, _, _ := getDriveType.Call(uintptr(unsafe.Pointer(root))); kind == remote {
		return "SMB"
	}
	return ""
}
