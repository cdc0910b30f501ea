package sqlitestore

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
)

// A disk is a file system that knows what would survive a power failure: the content that
// was synced, and of everything after it any part. It can fail at one operation. The files
// themselves are those of the operating system.
type disk struct {
	vfs.VFS

	name string // in the registry of SQLite
	dir  string

	mu      sync.Mutex
	files   map[string]*platter // by path
	done    []operation
	failAt  int // the number of the operation, from 1; 0: none
	how     fault
	failed  bool
	off     bool // after a power failure
	lottery *rand.Rand
}

// operation is a kind of work that can fail.
type operation string

const (
	opOpen     operation = "open"
	opWrite    operation = "write"
	opTruncate operation = "truncate"
	opSync     operation = "sync"
	opDelete   operation = "delete"
)

// fault is the way in which an operation fails.
type fault int

const (
	powerFailure fault = iota // and everything after it fails, too
	diskError                 // once; a write writes half
	diskFull                  // as diskError, for writes and truncations
	lostSync                  // once, and what it should have synced will be lost, as on Linux
)

// platter is the surviving part of a file.
type platter struct {
	exists  bool
	content []byte
	since   []change // since the last sync, in order
}

// change is an unsynced change of a file.
type change struct {
	what operation
	at   int64 // the new size for opTruncate
	data []byte
}

// sector is the smallest part of a write that is written whole.
const sector = 512

// newDisk registers an empty disk for one test. The same seed has the same parts survive.
func newDisk(t *testing.T, seed uint64) *disk {
	t.Helper()
	d := &disk{VFS: vfs.Find(""), name: "disk-" + uuid.NewString(), dir: t.TempDir(), files: map[string]*platter{}, lottery: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // no secret
	vfs.Register(d.name, d)
	t.Cleanup(func() { vfs.Unregister(d.name) })
	return d
}

// put stores a file that survives.
func (d *disk) put(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	d.files[path] = &platter{exists: true, content: append([]byte{}, content...)}
	return path
}

// on is the option that opens a store on the disk.
func (d *disk) on() Option { return func(c *connector) { c.vfs = d.name } }

// begin counts an operation, and returns an error if it has to fail. The caller holds mu.
func (d *disk) begin(what operation) error {
	if d.off {
		return vfs.SystemError(errors.New("no power"), sqlite3.IOERR)
	}
	d.done = append(d.done, what)
	if len(d.done) != d.failAt {
		return nil
	}
	d.failed = true
	codes := map[operation]sqlite3.ExtendedErrorCode{
		opOpen: sqlite3.ExtendedErrorCode(sqlite3.CANTOPEN), opWrite: sqlite3.IOERR_WRITE, opTruncate: sqlite3.IOERR_TRUNCATE, opSync: sqlite3.IOERR_FSYNC, opDelete: sqlite3.IOERR_DELETE,
	}
	switch d.how {
	case powerFailure:
		d.off = true
	case diskFull:
		return vfs.SystemError(syscall.ENOSPC, sqlite3.FULL)
	}
	return vfs.SystemError(syscall.EIO, codes[what])
}

func (d *disk) platter(path string) *platter {
	p := d.files[path]
	if p == nil {
		p = &platter{}
		d.files[path] = p
	}
	return p
}

func (d *disk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if name == nil {
		return vfsutil.WrapOpenFilename(d.VFS, name, flags)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin(opOpen); err != nil {
		return nil, flags, err
	}
	f, flags, err := vfsutil.WrapOpenFilename(d.VFS, name, flags)
	if err != nil {
		return nil, flags, err
	}
	return &diskFile{File: f, d: d, path: name.String()}, flags, nil
}

func (d *disk) Delete(path string, syncDir bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin(opDelete); err != nil {
		return err
	}
	if err := d.VFS.Delete(path, false); err != nil {
		return err
	}
	if p := d.platter(path); syncDir {
		*p = platter{}
	} else {
		p.since = append(p.since, change{what: opDelete})
	}
	return nil
}

// survivors writes what is left after a power failure into a new folder, and returns the
// path of a file in it.
func (d *disk) survivors(t *testing.T, name string) string {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	dir := t.TempDir()
	for path, p := range d.files {
		left := &platter{exists: p.exists, content: append([]byte{}, p.content...)}
		for i, c := range p.since {
			if d.lottery.IntN(2) == 0 {
				continue
			}
			if i == len(p.since)-1 && c.what == opWrite { // torn
				c.data = c.data[:min(len(c.data), sector*d.lottery.IntN(len(c.data)/sector+1))]
			}
			left.apply(c)
		}
		if !left.exists {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), left.content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, name)
}

func (p *platter) apply(c change) {
	switch c.what {
	case opDelete:
		*p = platter{since: p.since}
		return
	case opTruncate:
		if grow := c.at - int64(len(p.content)); grow > 0 {
			p.content = append(p.content, make([]byte, grow)...)
		}
		p.content = p.content[:c.at]
	case opWrite:
		if grow := c.at + int64(len(c.data)) - int64(len(p.content)); grow > 0 {
			p.content = append(p.content, make([]byte, grow)...)
		}
		copy(p.content[c.at:], c.data)
	}
	p.exists = true
}

// diskFile is an open file on a disk.
type diskFile struct {
	vfs.File

	d    *disk
	path string
}

func (f *diskFile) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(f.File) }

func (f *diskFile) DeviceCharacteristics() vfs.DeviceCharacteristic {
	return vfs.IOCAP_SUBPAGE_READ | vfs.IOCAP_POWERSAFE_OVERWRITE
}

func (f *diskFile) WriteAt(data []byte, at int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	failure := f.d.begin(opWrite)
	if failure != nil {
		data = data[:len(data)/2]
	}
	if f.d.off && len(f.d.done) != f.d.failAt {
		return 0, failure
	}
	p := f.d.platter(f.path)
	p.since = append(p.since, change{opWrite, at, append([]byte{}, data...)})
	n, err := f.File.WriteAt(data, at)
	if failure != nil {
		err = failure
	}
	return n, err
}

func (f *diskFile) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.begin(opTruncate); err != nil {
		return err
	}
	p := f.d.platter(f.path)
	p.since = append(p.since, change{what: opTruncate, at: size})
	return f.File.Truncate(size)
}

func (f *diskFile) Sync(vfs.SyncFlag) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	p := f.d.platter(f.path)
	if err := f.d.begin(opSync); err != nil {
		if !f.d.off && f.d.how == lostSync {
			p.since = nil
		}
		return err
	}
	p.exists = true
	for _, c := range p.since {
		p.apply(c)
	}
	p.since = nil
	return nil
}

// Access and reads work until the power is off, so that the program fails as late as it can.
func (d *disk) Access(path string, flags vfs.AccessFlag) (bool, error) {
	ok, err := d.VFS.Access(path, flags)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return ok, err
}
