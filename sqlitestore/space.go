package sqlitestore

import (
	"errors"
	"sync"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// spaceVFS is the operating system's files, with SQLite's own code for a full disk. Without
// it, a full disk looks like a broken one.
type spaceVFS struct{ vfs.VFSFilename }

// spaceName is the name of spaceVFS in SQLite's registry.
const spaceName = "authmount"

var registerSpace = sync.OnceFunc(func() {
	if system, ok := vfs.Find("").(vfs.VFSFilename); ok {
		vfs.Register(spaceName, spaceVFS{system})
	}
})

// systemFile lists the methods of a file of the operating system that SQLite looks for, except
// those to map it into memory, which is off.
type systemFile interface {
	vfs.FileLockState
	vfs.FileHasMoved
	vfs.FileSizeHint
	vfs.FilePersistWAL
	vfs.FilePowersafeOverwrite
	vfs.FileSharedMemory
}

type spaceFile struct{ systemFile }

func (v spaceVFS) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := v.VFSFilename.OpenFilename(name, flags)
	if system, ok := f.(systemFile); ok && err == nil {
		return spaceFile{system}, flags, nil
	}
	return f, flags, withSpace(err)
}

func (f spaceFile) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.systemFile.WriteAt(p, at)
	return n, withSpace(err)
}

func (f spaceFile) Truncate(size int64) error { return withSpace(f.systemFile.Truncate(size)) }
func (f spaceFile) SizeHint(size int64) error { return withSpace(f.systemFile.SizeHint(size)) }
func (f spaceFile) Sync(flags vfs.SyncFlag) error {
	return withSpace(f.systemFile.Sync(flags))
}

// DeviceCharacteristics leaves out the atomic writes of some file systems, whose methods
// systemFile lacks. With a log (-wal) SQLite does not use them.
func (f spaceFile) DeviceCharacteristics() vfs.DeviceCharacteristic {
	return f.systemFile.DeviceCharacteristics() &^ vfs.IOCAP_BATCH_ATOMIC
}

func withSpace(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return vfs.SystemError(err, sqlite3.FULL)
	}
	return err
}
