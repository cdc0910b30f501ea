package sqlitestore

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file on a network file system is refused by name, before anything is created there. On
// FUSE, which may be one, it is opened with a warning.
func TestNetworkFileSystems(t *testing.T) {
	for kind, refused := range map[string]bool{"NFS": true, "SMB": true, "9p": true, fuse: false, "": false} {
		for _, at := range []string{"folder", "file"} { // the file alone may be a mount
			path := filepath.Join(t.TempDir(), "auth.db")
			on := path
			if at == "folder" {
				on = filepath.Dir(path)
			}
			var logged strings.Builder
			s, err := Open(path, func(c *connector) {
				c.log = slog.New(slog.NewTextHandler(&logged, nil))
				c.kind = func(path string) string {
					if path == on {
						return kind
					}
					return ""
				}
			})
			if warned := strings.Contains(logged.String(), "level=WARN"); warned != (kind == fuse) || warned && !strings.Contains(logged.String(), "FUSE") {
				t.Errorf("%q: logged %q", kind, logged.String())
			}
			if refused {
				if err == nil || !strings.Contains(err.Error(), kind) || !strings.Contains(err.Error(), "network file system") {
					t.Errorf("%q: %v", kind, err)
				}
				if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) > 0 {
					t.Errorf("%q: %v, %v", kind, list, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%q: %v", kind, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// The system's own file systems, and a path that does not exist, are none of them.
func TestFileSystem(t *testing.T) {
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if kind := fileSystem(path); kind != "" && kind != fuse {
			t.Errorf("%s: %q", path, kind)
		}
	}
}
