package sqlitestore

import (
	"fmt"
	"os"
	"path/filepath"
)

// followed returns the path of the file that a path names through links. The file need not
// exist: creating it follows a link to no file, too.
func followed(path string) string {
	for range 40 { // as most systems do
		if file, err := filepath.EvalSymlinks(path); err == nil {
			return file
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return path
		}
		path = filepath.Join(dir, filepath.Base(path))
		target, err := os.Readlink(path)
		if err != nil {
			return path
		}
		if path = target; !filepath.IsAbs(path) {
			path = dir + string(filepath.Separator) + path // not Join, which would resolve ".." before links
		}
	}
	return path
}

// checkPlace refuses a file on a network file system by name, because the processes of
// several machines do not share its memory (-shm), and its locks often do not work. The file
// would get damaged. A file system in user space (FUSE) may be one, or a local one.
func (c *connector) checkPlace() error {
	for _, path := range []string{filepath.Dir(c.path), c.path} { // the file can be a mount, too
		switch kind := c.kind(path); kind {
		case "":
		case fuse:
			c.log.Warn("sqlitestore: the file is on FUSE; if that is a network drive, it gets damaged", "path", c.path)
			return nil
		default:
			return fmt.Errorf("auth: sqlite: %s is on a network file system (%s), where the file gets damaged; use a local disk, or pgstore", c.path, kind)
		}
	}
	return nil
}

// fuse is the name of file systems in user space. fileSystem returns it, the name of a
// network file system, or "" for all others and if the system does not tell.
const fuse = "FUSE"
