// Package store is a small store.Store to start your own from: plain maps, one mutex, no
// optional interfaces. It is complete (storetest passes) and slow (every change copies
// the maps, every search scans them). To write your own store, follow the order of this
// file (tokens are in tokens.go, data of new sessions is in signin.go):
//
//  1. The tables.
//  2. The change: one function checks every condition of store.Change, and every
//     method that changes something goes through it, as through a transaction.
//     This is the most important part.
//  3. The methods, each group with its part of storetest: go test -race -run
//     TestStore/users, and so on.
//  4. The optional interfaces, from FactorStore to AdminStore, in any order. Their
//     places are marked "optional:".
package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

// Store is a store.Store in memory, safe for concurrent use. NewUser.Creating is called
// while its mutex is held, and must not call the store.
type Store struct {
	mu sync.Mutex
	db tables
}

var _ store.Store = (*Store)(nil)

// tables holds all data. Values in the maps are replaced, never changed in place, so that
// a copy of the maps is a copy of all data.
type tables struct {
	users    map[string]store.Credentials
	sessions map[string]session
	tokens   map[tokenKey]store.Token
	buckets  map[string]store.Bucket
	done     map[changeKey]store.Idempotency
	devices  map[device]seen
	owned    bool // there has been an owner
}

type (
	session struct {
		store.Session
		Revoked  bool // stored until it would have expired, to distinguish revoked from unknown
		Rotation store.Rotation
	}
	tokenKey    struct{ purpose, hash string }
	changeKey   struct{ actor, route, key string }
	pair[T any] struct { // a session or token with its user
		Of   T
		User store.User
	}
)

// New returns an empty store.
func New() *Store {
	return &Store{db: tables{map[string]store.Credentials{}, map[string]session{}, map[tokenKey]store.Token{}, map[string]store.Bucket{}, map[changeKey]store.Idempotency{}, map[device]seen{}, false}}
}

// Contract is a literal, never store.ContractVersion: a later auth may require conditions
// that this code does not know, and must be able to detect that.
func (s *Store) Contract() int { return 16 }

// Ping reports whether the store is available.
func (s *Store) Ping(ctx context.Context) error { return ctx.Err() }

// read runs f while nothing changes, and returns a copy of its result.
func read[T any](ctx context.Context, s *Store, f func(db *tables) (T, error)) (out T, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err = ctx.Err(); err == nil { // a canceled call must change nothing
		out, err = f(&s.db)
	}
	return clone(out), err
}

// ---- 2. The change ----

// tx is a running change: the tables as they will be if it succeeds.
type tx struct {
	tables
	outcome store.Outcome
	token   *store.Token            // the token or code that this call uses
	by      store.Authority         // authority of the change
	origins map[string]store.Origin // by user: the origin of credentials that the change adds
	last    func() error            // called last, after all other checks
}

// change makes one change. The order is the contract's, and a store on a database has the
// same: begin; lock the rows of all conditions, always in the same order; check; apply;
// commit, or roll back on any error.
//
// Here do works on a copy, so it may apply before the conditions are checked. Otherwise
// check first.
func change[T any](ctx context.Context, s *Store, c *store.Change, do func(t *tx) (T, error)) (none T, err error) {
	if err := c.Check(); err != nil { // no time or authority: a bug in the caller
		return none, err
	}
	utc(&c.Now)
	return read(ctx, s, func(before *tables) (T, error) {
		if err := before.authority(c.By, c.Now); err != nil {
			return none, err
		}
		t := &tx{by: c.By, origins: map[string]store.Origin{}, last: func() error { return nil }}
		t.tables = tables{maps.Clone(before.users), maps.Clone(before.sessions), maps.Clone(before.tokens), before.buckets, maps.Clone(before.done), maps.Clone(before.devices), before.owned}
		out, err := do(t) // the method's own conditions and its effect
		if t.outcome == store.OutcomeWrongCode {
			s.db.tokens = t.tokens // counted, or conditions would make attempts free (optional: and its c.Events)
			return none, err
		}
		if err := t.once(c.Idempotency, c.Now); err != nil {
			return none, err
		}
		if t.outcome == store.OutcomeReused {
			s.db.sessions = t.sessions // revoked, although the method fails (optional: and its c.Events)
			return out, err
		}
		if err != nil {
			return none, err
		}
		stale := func(at store.UserAt) bool { return !before.stillSo(at, t.token, c.Now) }
		if slices.ContainsFunc(c.IfUsers, stale) || !is(c.IfRoles, 0) || c.IfKey != nil { // optional: the revision of the roles, and keys
			return none, store.ErrStale
		}
		owns := func(u store.Credentials) bool {
			return slices.Contains(u.User.Roles, store.RoleOwner) && !u.User.Banned(c.Now) && u.User.Accepted(c.Now)
		}
		if c.KeepOwner && !slices.ContainsFunc(slices.Collect(maps.Values(t.users)), owns) { // after the change
			return none, store.ErrLastOwner
		}
		if c.FirstOwner && before.owned {
			return none, store.ErrOwned
		}
		if err := t.last(); err != nil {
			return none, err
		}
		s.db = t.tables // optional: and c.Events of OutcomeDone, c.Messages
		return out, nil
	})
}

// origin returns the Origin of everything that the change adds to a user. It raises the
// user's sequence once.
func (t *tx) origin(userID string) store.Origin {
	o, raised := t.origins[userID]
	if !raised {
		c := t.users[userID]
		c.User.Sequence++
		t.users[userID] = c
		o = store.Origin{Sequence: c.User.Sequence, AddedBy: t.addedBy(userID)}
		t.origins[userID] = o
	}
	return o
}

// addedBy returns the sequence of the user's session or enrolment token that is the
// authority of the change or is redeemed by it; 0 if there is none.
func (t *tx) addedBy(userID string) int64 {
	token := t.token
	switch {
	case t.by.Session != nil && t.by.Session.UserID == userID:
		return t.sessions[t.by.Session.ID].Sequence
	case t.by.Token != nil:
		authority := t.tokens[keyOf(t.by.Token.Purpose, t.by.Token.Hash)]
		token = &authority
	}
	if token != nil && token.Purpose == store.PurposeEnroll && token.UserID == userID {
		return token.Sequence
	}
	return 0
}

// authority checks whether the authority of a change may still act. Proof and System
// always may: the method itself checks the evidence.
func (db *tables) authority(by store.Authority, now time.Time) error {
	var owner string
	switch {
	case by.Session != nil:
		sess := db.sessions[by.Session.ID]
		if sess.UserID != by.Session.UserID || !sess.live(now) {
			return store.ErrSessionEnded
		}
		owner = sess.UserID
	case by.Token != nil:
		token, err := db.liveToken(by.Token.Purpose, by.Token.Hash, now)
		if err != nil {
			return err
		}
		owner = token.UserID
	case by.Key != nil:
		return store.ErrKeyEnded // optional: without keys none is live
	}
	if u := db.users[owner].User; u.Banned(now) {
		return store.ErrBanned
	}
	return nil
}

// once stores the change's key, or reports that it was used before.
func (t *tx) once(i *store.Idempotency, now time.Time) error {
	if i == nil {
		return nil
	}
	key := changeKey{i.Actor, i.Route, i.Key}
	if old, ok := t.done[key]; ok && now.Before(old.ExpiresAt) {
		return &store.RepeatedError{Same: bytes.Equal(old.RequestHash, i.RequestHash), Result: bytes.Clone(old.Result)}
	}
	t.done[key] = clone(*i)
	return nil
}

// stillSo reports whether all of at still holds. Nothing holds for a deleted user.
func (db *tables) stillSo(at store.UserAt, token *store.Token, now time.Time) bool {
	if at.ID == "" && token != nil {
		at.ID = token.UserID
	}
	c, ok := db.users[at.ID]
	u := &c.User
	return ok && is(at.Revision, u.Revision) && is(at.CredentialRevision, u.CredentialRevision) && is(at.PasswordHash, c.PasswordHash) &&
		(at.Email == nil || store.EmailKey(*at.Email) == store.EmailKey(u.Email)) && is(at.EmailVerified, u.EmailVerified()) &&
		is(at.Phone, u.Phone) && is(at.PhoneVerified, u.PhoneVerified()) && is(at.Banned, u.Banned(now))
}

func is[T comparable](want *T, got T) bool { return want == nil || *want == got }

// ---- 3. Users ----

// User finds one user.
func (s *Store) User(ctx context.Context, key store.UserKey) (store.User, error) {
	c, err := s.Credentials(ctx, key)
	return c.User, err
}

// Credentials finds one user with the password hash.
func (s *Store) Credentials(ctx context.Context, key store.UserKey) (store.Credentials, error) {
	return read(ctx, s, func(db *tables) (store.Credentials, error) { return db.credentials(key) })
}

func (db *tables) credentials(key store.UserKey) (store.Credentials, error) {
	c, err := db.find(key)
	_, known := db.devices[device{c.User.ID, key.Device}]
	c.KnownDevice = known && key.Device != forgotten
	c.TrustedUntil = db.trustedUntil(device{c.User.ID, key.Device})
	return c, err
}

// UserRecords returns the data that is stored about a user.
func (s *Store) UserRecords(ctx context.Context, userID string, now time.Time) (store.UserRecords, error) {
	return read(ctx, s, func(db *tables) (store.UserRecords, error) { return db.held(userID, now), nil })
}

// Account is Credentials and UserRecords in one read.
func (s *Store) Account(ctx context.Context, key store.UserKey, now time.Time) (store.Credentials, store.UserRecords, error) {
	var held store.UserRecords
	c, err := read(ctx, s, func(db *tables) (store.Credentials, error) {
		c, err := db.credentials(key)
		if err == nil {
			held = db.held(c.User.ID, now)
		}
		return c, err
	})
	return c, held, err
}

func (db *tables) held(userID string, now time.Time) (h store.UserRecords) { // optional: and the messages that wait
	for d, s := range db.devices {
		if d.userID == userID && d.hash != forgotten && now.Before(s.last.Add(store.DeviceLife)) {
			h.Devices = append(h.Devices, store.DeviceRecord{Device: d.hash, FirstSeenAt: s.first, LastSeenAt: s.last, Origin: s.Origin})
		}
	}
	for _, t := range db.tokens {
		if userID != "" && t.UserID == userID && now.Before(t.ExpiresAt) {
			h.Pending = append(h.Pending, clone(store.TokenRecord{Purpose: t.Purpose, Subject: t.Subject, Data: t.Data, CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt}))
		}
	}
	slices.SortFunc(h.Devices, func(a, b store.DeviceRecord) int {
		return cmp.Or(a.FirstSeenAt.Compare(b.FirstSeenAt), a.LastSeenAt.Compare(b.LastSeenAt), cmp.Compare(a.Device, b.Device))
	})
	slices.SortFunc(h.Pending, func(a, b store.TokenRecord) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.ExpiresAt.Compare(b.ExpiresAt), cmp.Compare(a.Purpose, b.Purpose), cmp.Compare(a.Subject, b.Subject))
	})
	return h
}

// EverOwned reports whether there has been an owner.
func (s *Store) EverOwned(ctx context.Context) (bool, error) {
	return read(ctx, s, func(db *tables) (bool, error) { return db.owned, nil })
}

func (db *tables) find(key store.UserKey) (store.Credentials, error) {
	for id, c := range db.users {
		u := &c.User
		if (key.ID != "" && key.ID == id) || (key.Email != "" && store.EmailKey(key.Email) == store.EmailKey(u.Email)) ||
			(key.Phone != "" && key.Phone == u.Phone) || (key.Handle != "" && key.Handle == u.Handle) || (key.Provider != "" && slices.ContainsFunc(u.Identities, same(key.Provider, key.Subject))) {
			return c, nil
		}
	}
	return store.Credentials{}, store.ErrNotFound
}

// save stores a user, or returns the error for a value that is taken. SQL has unique
// indexes for that.
func (t *tx) save(c store.Credentials) (store.User, error) {
	c = clone(c)
	u := &c.User
	utc(&u.EmailVerifiedAt, &u.PhoneVerifiedAt, &u.CreatedAt, &u.UpdatedAt, &u.LastSignInAt, &u.BannedUntil, &u.AcceptedUntil)
	for i := range u.Identities {
		utc(&u.Identities[i].CreatedAt, &u.Identities[i].LastSignInAt)
	}
	taken := func(key store.UserKey) bool {
		other, err := t.find(key)
		return err == nil && other.User.ID != u.ID
	}
	switch {
	case taken(store.ByEmail(u.Email)):
		return *u, &store.ConflictError{Field: "email"}
	case taken(store.ByPhone(u.Phone)):
		return *u, &store.ConflictError{Field: "phone"}
	case taken(store.ByHandle(u.Handle)):
		return *u, &store.ConflictError{Field: "handle"}
	}
	for i, id := range u.Identities {
		if t.identityTaken(u.ID, id.ID) {
			return *u, &store.ConflictError{Field: "id"}
		}
		if taken(store.ByIdentity(id.Provider, id.Subject)) || slices.ContainsFunc(u.Identities[:i], same(id.Provider, id.Subject)) {
			return *u, &store.ConflictError{Field: "identity"}
		}
	}
	slices.SortFunc(u.Identities, func(a, b store.Identity) int { return byAge(a.CreatedAt, a.ID, b.CreatedAt, b.ID) })
	t.users[u.ID] = c
	t.owned = t.owned || u.AcceptedSequence > 0 && slices.Contains(u.Roles, store.RoleOwner)
	return *u, nil
}

// identityTaken reports whether another user has an identity of that id.
func (t *tx) identityTaken(userID, id string) bool {
	for _, c := range t.users {
		if c.User.ID != userID && slices.ContainsFunc(c.User.Identities, func(i store.Identity) bool { return i.ID == id }) {
			return true
		}
	}
	return false
}

// CreateUser adds a user with all associated data.
func (s *Store) CreateUser(ctx context.Context, c store.CreateUser) (store.User, error) {
	return change(ctx, s, &c.Change, func(t *tx) (store.User, error) { return t.create(ctx, c.NewUser) })
}

func (t *tx) create(ctx context.Context, n store.NewUser) (store.User, error) {
	n.User.MFAEnabled, n.User.Revision, n.User.CredentialRevision = false, 0, 0 // set by the store
	if _, taken := t.users[n.User.ID]; taken {
		return n.User, &store.ConflictError{Field: "id"}
	}
	n.User = clone(n.User)
	n.User.Begin(n.PasswordHash != "")
	t.origins[n.User.ID] = store.Origin{Sequence: n.User.Sequence} // of all that comes with it
	u, err := t.save(store.Credentials{User: n.User, PasswordHash: n.PasswordHash, Notes: n.Notes})
	if err == nil && n.Session != nil {
		u, err = t.addSession(*n.Session, false)
	}
	for _, token := range n.Tokens {
		if err == nil {
			err = t.addToken(token)
		}
	}
	if n.Creating != nil {
		t.last = func() error { return n.Creating(ctx, clone(u)) }
	}
	return u, err
}

// UpdateUser applies a patch.
func (s *Store) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	return change(ctx, s, &c.Change, func(t *tx) (store.User, error) { return t.update(c.UserID, &c.Patch, c.Now) })
}

func (t *tx) update(id string, p *store.UserPatch, now time.Time) (store.User, error) {
	c, ok := t.users[id]
	if !ok {
		return store.User{}, store.ErrNotFound
	}
	if p == nil || p.Empty() {
		return c.User, nil
	}
	addedBy := t.addedBy(id)
	after := clone(p.Apply(c, now, addedBy))
	if after.User.Sequence > c.User.Sequence {
		t.origins[id] = store.Origin{Sequence: after.User.Sequence, AddedBy: addedBy}
	}
	c = after
	if p.DropCredentials {
		t.revoke(id, store.SessionFilter{Except: p.KeepSession}, now)
	}
	switch {
	case p.DropCredentials:
		t.forgetDevices(id, 0) // devices of the previous owner
	case p.DropDevices && p.Revoke != nil:
		t.forget(id, *p.Revoke)
	case p.DropDevices:
		t.forget(id, store.SessionFilter{})
	}
	if p.Revoke != nil {
		t.revoke(id, *p.Revoke, now)
	}
	t.dropTokens(id, p.DropTokens)
	if p.DropCredentials {
		maps.DeleteFunc(t.tokens, func(_ tokenKey, token store.Token) bool { return token.UserID == id })
	} // optional: and the factors, by DropFactors and DropCredentials
	return t.save(c)
}

// dropTokens removes a user's tokens of some purposes.
func (t *tx) dropTokens(userID string, purposes []store.Purpose) {
	maps.DeleteFunc(t.tokens, func(_ tokenKey, token store.Token) bool {
		return token.UserID == userID && slices.Contains(purposes, token.Purpose)
	})
}

// DeleteUser removes a user and all associated data.
func (s *Store) DeleteUser(ctx context.Context, c store.DeleteUser) error {
	_, err := change(ctx, s, &c.Change, func(t *tx) (any, error) {
		if _, ok := t.users[c.UserID]; !ok {
			return nil, store.ErrNotFound
		}
		delete(t.users, c.UserID)
		t.forgetDevices(c.UserID, 0)
		maps.DeleteFunc(t.sessions, func(_ string, sess session) bool { return sess.UserID == c.UserID })
		maps.DeleteFunc(t.tokens, func(_ tokenKey, token store.Token) bool { return token.UserID == c.UserID })
		return nil, nil
	})
	return err
}

// ---- 3. Sessions ----

// Take counts in every bucket, or in none.
func (s *Store) Take(ctx context.Context, draws []store.Draw, now time.Time) (store.Decision, error) {
	return read(ctx, s, func(db *tables) (store.Decision, error) {
		d, next := store.Decision{Allowed: true}, maps.Clone(db.buckets)
		for _, draw := range draws {
			b, ok, wait, left := draw.Rate.Apply(next[draw.Key], now, draw.Cost)
			next[draw.Key], d.Remaining = b, append(d.Remaining, left)
			if !ok {
				d.Allowed, d.RetryAfter = false, max(d.RetryAfter, wait)
			}
		}
		if d.Allowed {
			db.buckets = next
			return d, nil
		}
		for i, draw := range draws { // undo: nothing is counted
			_, _, _, d.Remaining[i] = draw.Rate.Apply(db.buckets[draw.Key], now, 0)
		}
		return d, nil
	})
}

// Sweep deletes up to limit expired records.
func (s *Store) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	return read(ctx, s, func(db *tables) (n int, err error) {
		over := func(end time.Time) bool {
			if n >= limit || now.Before(end) {
				return false
			}
			n++
			return true
		}
		maps.DeleteFunc(db.sessions, func(_ string, sess session) bool { return over(sess.End()) })
		maps.DeleteFunc(db.tokens, func(_ tokenKey, token store.Token) bool { return over(token.ExpiresAt) })
		maps.DeleteFunc(db.buckets, func(_ string, b store.Bucket) bool { return over(b.Full) })
		maps.DeleteFunc(db.devices, func(_ device, d seen) bool { return over(d.last.Add(store.DeviceLife)) })
		maps.DeleteFunc(db.done, func(_ changeKey, i store.Idempotency) bool { return over(i.ExpiresAt) })
		return n, nil
	})
}

// clone returns a deep copy, as sending a value to a database and back would, so that no
// caller shares the store's data.
func clone[T any](v T) (out T) {
	if b, err := json.Marshal(v); err != nil || json.Unmarshal(b, &out) != nil {
		panic("metadata that is no JSON")
	}
	return out
}

// utc brings times into the form in which a store returns them.
func utc(times ...*time.Time) {
	for _, t := range times {
		*t = t.UTC().Truncate(time.Microsecond)
	}
}

func same(provider, subject string) func(store.Identity) bool {
	return func(i store.Identity) bool { return i.Provider == provider && i.Subject == subject }
}

// byAge is the order of lists.
func byAge(a time.Time, aID string, b time.Time, bID string) int {
	return cmp.Or(a.Compare(b), cmp.Compare(aID, bID))
}
