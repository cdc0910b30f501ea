package sqlitestore

import "syscall"

// fileSystem names the file system of a path by its magic number (statfs(2)), of which the
// first 32 bits count.
func fileSystem(path string) string {
	var s syscall.Statfs_t
	if syscall.Statfs(path, &s) != nil {
		return ""
	}
	switch uint32(s.Type) { //nolint:gosec // the type differs by architecture
	case 0x6969:
		return "NFS"
	case 0x517b, 0xff534d42, 0xfe534d42:
		return "SMB"
	case 0x01021997:
		return "9p"
	case 0x65735546:
		return fuse
	}
	return ""
}
