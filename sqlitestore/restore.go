package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// RestoreOption is an option of Restore.
type RestoreOption func(*restoring)

type restoring struct{ sessions, codes bool }

// KeepSessions has Restore keep everything as it is in the backup: for a file that moves to
// another machine, if nothing has changed since the backup. After any later change it makes
// ended sessions and used links valid again.
func KeepSessions() RestoreOption {
	return func(r *restoring) { r.sessions, r.codes = true, true }
}

// KeepRecoveryCodes has Restore keep the recovery codes of second factors, so that users who
// lost their second factor can still sign in with one. Codes that were used since the backup
// are valid again.
func KeepRecoveryCodes() RestoreOption { return func(r *restoring) { r.codes = true } }

// Restore replaces the file at to, or creates it, with a backup. It works on a copy of the
// backup: it checks it, ends what the backup would revive, syncs it, and then gives it its
// name, so that a crash leaves either the old or the new file, whole, and perhaps a folder
// to.tmp-* with the copy. The old -wal and -shm files are removed. The new file is readable
// only to its owner, so run it as the user of the service.
//
// A backup has sessions that have ended since, and links, codes and recovery codes that have
// been used. Restore ends them all, and with them trusted devices, impersonations, waiting
// messages and jobs: all users sign in again. KeepSessions and KeepRecoveryCodes change that.
// Access tokens stay valid until they expire, except on routes that require the live session
// and in processes with WatchRevocations. Passwords, second factors, bans, roles, keys and
// deleted accounts are those of the backup, and so are the settings. Keep a copy of the old
// file: only its audit log lists later changes.
//
// Restore only backups that you trust: it refuses a file whose tables, indexes and triggers of
// this package are not those of this version, but keeps all rows, and the tables and triggers
// of the application.
//
// The error is ErrInUse if a program, also this one, has the file at to open; stop it first,
// and start it after Restore. It is ErrDamaged if the backup is. After an error the old file is
// unchanged, except that its log (-wal) may have been copied into it.
func Restore(ctx context.Context, from, to string, opts ...RestoreOption) error {
	r := &restoring{}
	for _, o := range opts {
		o(r)
	}
	if to == "" {
		return errors.New("auth: sqlite: Restore needs the path of a file")
	}
	to, err := filepath.Abs(to)
	if err != nil {
		return ofFile(ctx, err)
	}
	if target, err := filepath.EvalSymlinks(to); err == nil {
		to = target
	}
	if from, err = filepath.Abs(from); err != nil {
		return ofFile(ctx, err)
	}
	return ofFile(ctx, r.restore(ctx, from, to))
}

func (r *restoring) restore(ctx context.Context, from, to string) error {
	source, err := os.Stat(from)
	if err != nil {
		return explained(from, err)
	}
	if old, err := os.Stat(to); err == nil && os.SameFile(source, old) {
		return errors.New("the backup and the file to restore are the same file")
	}
	return beside(to, func(copied string) error {
		if err := duplicate(ctx, from, copied); err != nil {
			return err
		}
		if err := r.clean(ctx, from, copied); err != nil {
			return err
		}
		if err := syncFile(copied); err != nil {
			return explained(copied, err)
		}
		return replace(ctx, copied, to)
	})
}

// duplicate copies a file with SQLite, because its newest rows may be in a log. Without a log
// nobody has it open, and SQLite creates nothing beside it, also where nothing can be created.
func duplicate(ctx context.Context, from, to string) error {
	parameter := "mode=ro"
	if !exists(from+"-wal") && !exists(from+"-journal") {
		parameter += "&immutable=1"
	}
	db, err := direct(ctx, from, parameter)
	if err != nil {
		return err
	}
	return errors.Join(explained(from, db.Backup("main", (&connector{path: to}).uri())), db.Close())
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// revisions is added to the revisions in a restored file, so that no access token, page or
// request from the time after the backup carries one that the file will have again.
const revisions = `1000000`

// restored lists every table and the statement that cleans it; without one it is kept.
//
// Restore ends records that may have been used or ended since the backup, and unfinished work,
// such as jobs, because it may be the reason to restore. It keeps records on which later
// answers depend: the ids of deleted users, privileged names, idempotency keys (the backup
// also holds their changes) and rate limits (without a row a limit is full).
//
// It also keeps the states of second factors. A TOTP code that was used after the backup is
// valid again until it expires, at most 90 seconds after it was shown. The counters of passkeys
// are lower than those of the authenticators, which the check of a passkey accepts.
var restored = []struct{ table, sessions, codes string }{
	{table: "auth_schema"},
	{table: "auth_project", sessions: `update auth_project set roles_revision = roles_revision + ` + revisions},
	{table: "auth_users", sessions: `update auth_users set revision = revision + ` + revisions + `, credential_revision = credential_revision + ` + revisions},
	{table: "auth_deleted_users"},
	{table: "auth_user_roles"},
	{table: "auth_user_words"},
	{table: "auth_user_fields"},
	{table: "auth_identities"},
	{table: "auth_sessions", sessions: `update auth_sessions set revoked = 1 where revoked = 0`},
	{table: "auth_devices", sessions: `update auth_devices set trusted_until = null where trusted_until is not null`}, // still known, so that no one is notified of a new device
	{table: "auth_tokens", sessions: `delete from auth_tokens`},                                                       // all links, codes, states and invitations
	{table: "auth_factors", sessions: `delete from auth_factors where enabled = 0`},                                   // the enrolment began in a session
	{table: "auth_recovery_codes", codes: `delete from auth_recovery_codes`},
	{table: "auth_events"},
	{table: "auth_messages", sessions: `delete from auth_messages`}, // they have been sent, and their links are invalid
	{table: "auth_message_log", sessions: `update auth_message_log set state = 'dropped' where state = 'queued'`},
	{table: "auth_idempotency"},
	{table: "auth_roles"},
	{table: "auth_privileged_roles"},
	{table: "auth_api_keys", sessions: `update auth_api_keys set revision = revision + ` + revisions},
	{table: "auth_settings", sessions: `update auth_settings set revision = revision + ` + revisions},
	{table: "auth_impersonations", sessions: `update auth_impersonations set ended = 1 where ended = 0`},
	{table: "auth_jobs", sessions: `delete from auth_jobs where state <> 'done'`}, // perhaps the reason to restore
	{table: "auth_job_chunks"}, // deleted with their jobs
	{table: "auth_counts"},
	{table: "auth_active"},
	{table: "auth_limits"},
	// Processes that watch refuse the tokens of all sessions, also of those after the backup.
	{table: "auth_revocations", sessions: `delete from auth_revocations; insert into auth_revocations (everybody_until) values (cast(unixepoch('subsec') * 1000000 as integer))`},
}

// clean checks the copy of a backup and ends what it would revive.
func (r *restoring) clean(ctx context.Context, from, copied string) error {
	db, err := direct(ctx, copied, "mode=rw")
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // again, after an error
	// The application's triggers, or those of a crafted file, do not change the work below.
	for flag, on := range map[sqlite3.DBConfig]bool{sqlite3.DBCONFIG_ENABLE_TRIGGER: false, sqlite3.DBCONFIG_TRUSTED_SCHEMA: false, sqlite3.DBCONFIG_DEFENSIVE: true} {
		if _, err := db.Config(flag, on); err != nil {
			return explained(copied, err)
		}
	}
	if err := sound(db, from, `pragma integrity_check(1)`); err != nil {
		return err
	}
	// One file, and nothing of deleted rows in its free pages.
	statements := []string{`pragma journal_mode = delete`, `pragma foreign_keys = on`, `pragma secure_delete = on`, `begin immediate`}
	for _, t := range restored {
		if !r.sessions && t.sessions != "" {
			statements = append(statements, t.sessions)
		}
		if !r.codes && t.codes != "" {
			statements = append(statements, t.codes)
		}
	}
	for _, statement := range append(statements, `commit`) {
		if err := db.Exec(statement); err != nil {
			return explained(copied, err)
		}
	}
	return explained(copied, db.Close())
}

// replace gives a file the name of another, which it locks meanwhile.
func replace(ctx context.Context, file, to string) error {
	release, err := seize(ctx, to)
	if err != nil {
		return err
	}
	defer release()
	// The log of the old file would damage the new one. The old file is whole without it.
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if err := os.Remove(to + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return explained(to, err)
		}
	}
	if err := syncDir(to); err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // which renames no open file
		release()
	}
	if err := os.Rename(file, to); err != nil {
		return explained(to, err)
	}
	return syncDir(to)
}

// seize locks a file, if there is one, as SQLite does for a change of its journal mode: while
// no other connection has it open. It copies the log into the file. A program that opens the
// old file before it is replaced finds it moved, and cannot write to it.
func seize(ctx context.Context, path string) (release func(), err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	db, err := direct(ctx, path, "mode=rw")
	if err != nil {
		return nil, err
	}
	closing := func() { _ = db.Close() } // nothing depends on the old file any more
	err = db.Exec(`pragma locking_mode = exclusive; begin immediate; commit; pragma journal_mode = delete; begin exclusive; commit`)
	if err == nil {
		return closing, nil
	}
	closing()
	if errors.Is(err, sqlite3.BUSY) {
		return nil, fmt.Errorf("%w: %s: %w", ErrInUse, path, err)
	}
	if err = explained(path, err); !errors.Is(err, ErrDamaged) {
		return nil, err
	}
	return seizeDamaged(ctx, path)
}

// seizeDamaged takes the same lock on a file that SQLite cannot read.
func seizeDamaged(ctx context.Context, path string) (release func(), err error) {
	db, err := direct(ctx, path, "mode=rw")
	if err != nil {
		return nil, err
	}
	opened, err := db.FileControl("main", sqlite3.FCNTL_FILE_POINTER)
	if err == nil {
		f := opened.(vfs.File)
		for _, level := range []vfs.LockLevel{vfs.LOCK_SHARED, vfs.LOCK_RESERVED, vfs.LOCK_EXCLUSIVE} {
			if err = f.Lock(level); err != nil {
				err = fmt.Errorf("%w: %s: %w", ErrInUse, path, err)
				break
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return func() { _ = db.Close() }, nil
}
