package memstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// snapshotVersion is raised when the format changes.
const snapshotVersion = 3

// snapshot is the format of the file. Rate limits are not saved, because they are short.
type snapshot struct {
	Version  int                 `json:"version"`
	Users    []savedUser         `json:"users"`
	Sessions []savedSession      `json:"sessions"`
	Tokens   []store.Token       `json:"tokens"`
	Events   []store.Event       `json:"events"`
	Messages []message           `json:"messages"`
	Log      []loggedMessage     `json:"message_log,omitempty"`
	Roles    store.RoleTable     `json:"roles"`
	Keys     []store.APIKey      `json:"keys"`
	Done     []store.Idempotency `json:"done"`

	Counts         []store.Count         `json:"counts,omitempty"`
	Active         []savedActive         `json:"active,omitempty"`
	Settings       store.StoredSettings  `json:"settings,omitzero"`
	Impersonations []store.Impersonation `json:"impersonations,omitempty"`
	Owned          bool                  `json:"owned,omitempty"`
	Deleted        []string              `json:"deleted,omitempty"` // ids of deleted users
	Jobs           []savedJob            `json:"jobs,omitempty"`
}

type savedUser struct {
	User           store.User     `json:"user"`
	Hash           string         `json:"password_hash"`
	Factors        []store.Factor `json:"factors,omitempty"`
	Recovery       [][]byte       `json:"recovery,omitempty"`
	RecoveryOrigin store.Origin   `json:"recovery_origin,omitzero"`
	Notes          string         `json:"notes,omitempty"`

	Devices map[string]device `json:"devices,omitempty"`
}

type savedActive struct {
	Period string    `json:"period"`
	Since  time.Time `json:"since"`
	UserID string    `json:"user_id"`
}

type savedJob struct {
	Job    store.Job        `json:"job"`
	Chunks []store.JobChunk `json:"chunks"`
}

type savedSession struct {
	Session  store.Session  `json:"session"`
	Revoked  bool           `json:"revoked"`
	Rotation store.Rotation `json:"rotation"`
	Order    int64          `json:"order"`
}

// Open creates a store from the snapshot at path, or an empty one if there is no such file.
// A file that cannot be read completely is an error.
func Open(path string) (*Store, error) {
	s := New()
	s.path = path
	b, err := os.ReadFile(path) //nolint:gosec // the caller's own file
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("memstore: %w", err)
	}
	if err := s.load(b); err != nil {
		return nil, fmt.Errorf("memstore: snapshot %s: %w", path, err)
	}
	return s, nil
}

func (s *Store) load(b []byte) error {
	var snap snapshot
	if err := json.Unmarshal(b, &snap); err != nil {
		return err
	}
	if snap.Version != snapshotVersion {
		return fmt.Errorf("version %d is not %d", snap.Version, snapshotVersion)
	}
	for _, saved := range snap.Users {
		if err := s.loadUser(saved); err != nil {
			return err
		}
	}
	for _, saved := range snap.Sessions {
		u := s.users[saved.Session.UserID]
		if u == nil {
			return errors.New("a session of no user")
		}
		s.sessions[saved.Session.ID] = &session{saved.Session, saved.Revoked, saved.Rotation, saved.Order}
		s.order = max(s.order, saved.Order)
		u.sessions[saved.Session.ID] = true
	}
	for _, t := range snap.Tokens {
		if t.UserID != "" && s.users[t.UserID] == nil {
			return errors.New("a token of no user")
		}
		s.keepToken(t)
	}
	s.events = snap.Events
	for _, m := range snap.Messages {
		s.messages[m.ID] = &m
	}
	for _, l := range snap.Log {
		s.log[l.ID] = &l
	}
	for _, r := range snap.Roles.Roles {
		s.roles[r.Name] = r
	}
	for _, name := range snap.Roles.Privileged {
		s.privileged[name] = true
	}
	s.rolesRevision = snap.Roles.Revision
	s.settings = snap.Settings
	s.owned = s.owned || snap.Owned
	for _, id := range snap.Deleted {
		s.deleted[id] = true
	}
	for _, k := range snap.Keys {
		s.addKey(k)
	}
	for _, c := range snap.Counts {
		s.counts[countKey{c.Metric, c.Label, utc(c.At)}] = c.N
	}
	for _, a := range snap.Active {
		s.active[activeKey{a.Period, utc(a.Since), a.UserID}] = true
	}
	for _, i := range snap.Done {
		s.done[changeKey{i.Actor, i.Route, i.Key}] = &i
	}
	for _, i := range snap.Impersonations {
		s.impersonations[i.ID] = &impersonation{Impersonation: i}
	}
	for _, j := range snap.Jobs {
		s.jobs[j.Job.ID] = &job{j.Job, j.Chunks}
	}
	return nil
}

func (s *Store) loadUser(saved savedUser) error {
	u := newUser(saved.User, saved.Hash)
	if s.users[u.ID] != nil {
		return &store.ConflictError{Field: "id"}
	}
	if err := s.conflict(&u.User, ""); err != nil {
		return err
	}
	u.recovery, u.recoveryOrigin, u.notes = saved.Recovery, saved.RecoveryOrigin, saved.Notes
	maps.Copy(u.devices, saved.Devices)
	for _, f := range saved.Factors {
		u.factors[f.ID] = &f
	}
	s.users[u.ID] = u
	s.index(u)
	return nil
}

// Save writes the snapshot, wholly or not at all. Only the file's owner can read it,
// because it contains password hashes.
func (s *Store) Save(ctx context.Context) error {
	if s.path == "" {
		return errors.New("memstore: the store has no file; see Open")
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	b, err := json.Marshal(s.snapshot())
	unlock()
	if err != nil {
		return fmt.Errorf("memstore: %w", err)
	}
	if err := replace(s.path, b); err != nil {
		return fmt.Errorf("memstore: %w", err)
	}
	return nil
}

func (s *Store) snapshot() snapshot {
	snap := snapshot{Version: snapshotVersion, Events: s.events, Roles: s.roleTable(), Settings: s.settings, Owned: s.owned, Deleted: slices.Sorted(maps.Keys(s.deleted))}
	for _, u := range s.users {
		saved := savedUser{User: u.User, Hash: u.hash, Recovery: u.recovery, RecoveryOrigin: u.recoveryOrigin, Notes: u.notes, Devices: u.devices}
		for _, f := range u.factors {
			saved.Factors = append(saved.Factors, *f)
		}
		snap.Users = append(snap.Users, saved)
	}
	for _, sess := range s.sessions {
		snap.Sessions = append(snap.Sessions, savedSession{sess.Session, sess.revoked, sess.rotation, sess.order})
	}
	for _, t := range s.tokens {
		snap.Tokens = append(snap.Tokens, *t)
	}
	for _, m := range s.messages {
		snap.Messages = append(snap.Messages, *m)
	}
	for _, l := range s.log {
		snap.Log = append(snap.Log, *l)
	}
	for _, k := range s.keys {
		snap.Keys = append(snap.Keys, *k)
	}
	for _, i := range s.done {
		snap.Done = append(snap.Done, *i)
	}
	for k, n := range s.counts {
		snap.Counts = append(snap.Counts, store.Count{Metric: k.metric, Label: k.label, At: k.at, N: n})
	}
	for k := range s.active {
		snap.Active = append(snap.Active, savedActive{k.period, k.since, k.userID})
	}
	for _, j := range s.jobs {
		snap.Jobs = append(snap.Jobs, savedJob{j.Job, j.chunks})
	}
	for _, i := range s.impersonations {
		if !i.ended {
			snap.Impersonations = append(snap.Impersonations, i.Impersonation)
		}
	}
	return snap
}

// replace writes a temporary file in the same directory and renames it to path, so that a
// crash leaves the old file or the new one.
func replace(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
