package sqlitestore

import (
	"strings"
	"syscall"
)

// fileSystem names the file system of a path (statfs(2)).
func fileSystem(path string) string {
	var s syscall.Statfs_t
	if syscall.Statfs(path, &s) != nil {
		return ""
	}
	var name []byte
	for _, c := range s.Fstypename {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	switch name := string(name); {
	case name == "nfs":
		return "NFS"
	case name == "smbfs", name == "cifs":
		return "SMB"
	case name == "9p":
		return "9p"
	case strings.Contains(name, "fuse"):
		return fuse
	}
	return ""
}
