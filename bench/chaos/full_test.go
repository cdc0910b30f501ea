//go:build faults

package chaos

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/authmount/auth/internal/pgtest"
)

// disk holds a cluster's data.
type disk struct {
	pg         *pgtest.Server
	fill, free func()
}

// smallFileSystem mounts a separate file system of some megabytes, which needs root, and
// returns functions that fill it and free it again. dir is empty without root.
func smallFileSystem(t *testing.T, size string) (dir string, fill, free func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "chaosdisk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size="+size+",mode=0755", "chaos", dir).CombinedOutput(); err != nil {
		t.Logf("no file system of our own: %v\n%s", err, out)
		return "", nil, nil
	}
	t.Cleanup(func() { // runs after the cleanup of processes that use it
		eventually(t, 10*time.Second, "unmount "+dir, func() bool { return exec.CommandContext(context.Background(), "umount", dir).Run() == nil })
	})
	filler := filepath.Join(dir, "filler")
	fill = func() {
		f, err := os.Create(filler)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		for size := 1 << 20; size >= 512; {
			if _, err = f.Write(make([]byte, size)); err != nil {
				size /= 2
			}
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the disk is not full: %v", err)
		}
	}
	free = func() {
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}
	return dir, fill, free
}

// smallDisk is a cluster on a separate small file system, which needs root.
func smallDisk(t *testing.T) *disk {
	t.Helper()
	dir, fill, free := smallFileSystem(t, "160m")
	if dir == "" {
		return nil
	}
	t.Setenv("TMPDIR", dir)
	return &disk{pg: postgres(t), fill: fill, free: free}
}

// reportedFull is a cluster that reports a full disk as soon as a session or token is
// added: after the account's row.
func reportedFull(t *testing.T) *disk {
	t.Helper()
	d := &disk{pg: postgres(t)}
	d.fill = func() {
		execute(t, d.pg.URL, `create function public.disk_full() returns trigger language plpgsql as $$ begin
				raise exception 'could not extend file "base/5/16411": No space left on device' using errcode = '53100';
			end $$`,
			"create trigger disk_full before insert on auth.sessions for each row execute function public.disk_full()",
			"create trigger disk_full before insert on auth.tokens for each row execute function public.disk_full()")
	}
	d.free = func() { execute(t, d.pg.URL, "drop function public.disk_full cascade") }
	return d
}

func TestDiskFullUnderLoad(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T) *disk{"file system": smallDisk, "reported": reportedFull} {
		t.Run(name, func(t *testing.T) {
			d := prepare(t)
			if d == nil {
				return // it was reported
			}
			servers := trio(t, d.pg.URL)
			l := begin(t, 90, servers...)
			l.flows(40, 30*time.Second)
			d.fill()
			eventually(t, 60*time.Second, "answers of 503", func() bool {
				_, n := l.count()
				return n >= 30
			})
			if out := strings.Join(tails(servers), "\n"); !strings.Contains(out, "53100") {
				t.Errorf("not for the disk's sake:\n%s", out)
			}
			for _, s := range servers { // reading needs no space
				s.must(t, 200, "GET", "/healthz", nil)
			}
			whole(t, d.pg.URL)
			d.free()
			l.up()
			if name == "file system" {
				noRoomForWAL(t, d, l)
			}
			l.end()
			l.report()
			l.verify(servers[0], d.pg.URL)
		})
	}
}

func tails(servers []*server) (lines []string) {
	for _, s := range servers {
		lines = append(lines, s.p.tail()...)
	}
	return lines
}

// nextSegment makes Postgres start a new file of its log.
func nextSegment(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, "select pg_logical_emit_message(false, 'chaos', 'x'), pg_switch_wal()")
	return err
}

// crashing reports whether an error comes from a crashed server, not from a failed
// statement.
func crashing(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Severity == "PANIC" || strings.HasPrefix(e.Code, "57P0") // stopping or starting
	}
	return true // no connection, or a lost one
}

// noRoomForWAL fills the disk until Postgres cannot write its log, which makes it crash.
func noRoomForWAL(t *testing.T, d *disk, l *load) {
	t.Helper()
	d.fill()
	var panicked error
	eventually(t, 30*time.Second, "Postgres panics", func() bool {
		panicked = try(d.pg.URL, nextSegment)
		return panicked != nil && crashing(panicked)
	})
	t.Log(panicked)
	_, before := l.count()
	eventually(t, 30*time.Second, "answers of 503", func() bool {
		_, n := l.count()
		return n >= before+workers
	})
	pause(time.Second) // time for Postgres to restart
	d.free()
	if d.pg.Signal(0) != nil { // it stopped: an operator starts it again
		crashed(t, d.pg)
		t.Log("Postgres ended for want of room, and is started again")
		if err := d.pg.Run("max_connections=100"); err != nil {
			t.Fatal(err)
		}
	}
	l.up()
}
