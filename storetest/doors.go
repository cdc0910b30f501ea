package storetest

import (
	"context"
	"reflect"
	"slices"

	"github.com/authmount/auth/store"
)

// attempt is a call that succeeds once if its conditions hold.
type attempt struct {
	user  store.User // a stored user for conditions
	self  bool       // the call uses up a token or code of the user
	about string     // the user of events without one; empty: none
	ends  []string   // the sessions that it ends
	isNew bool       // it creates a session on a new device
	call  func(ctx context.Context, c store.Change) error
}

// doors returns the mutating methods, each with a function that prepares a call. An attempt
// may be prepared repeatedly in one world.
func doors() map[string]func(*world) attempt {
	return map[string]func(*world) attempt{
		"CreateUser":     createUser,
		"UpdateUser":     updateUser,
		"DeleteUser":     deleteUser,
		"CreateSession":  createSession,
		"AdvanceSession": advanceSession,
		"RevokeSessions": revokeSessions,
		"PutToken":       putToken,
		"RedeemToken":    redeemToken,
		"RedeemCode":     tryCode,

		"PutFactor":        putFactor,
		"EnableFactor":     enableFactor,
		"UpdateFactor":     updateFactor,
		"UseFactor":        useFactor,
		"UseRecoveryCode":  useRecoveryCode,
		"PutRecoveryCodes": putRecoveryCodes,
		"RemoveFactor":     removeFactor,

		"PutRole":           putRole,
		"DeleteRole":        deleteRole,
		"PutKey":            putKey,
		"AddAuthentication": addProof,

		"CreateUsers": createUsers,
		"PutSettings": putSettings,
		"FillLimits":  fillLimits,

		"EndEverySession":    endEverySession,
		"BeginImpersonation": beginImpersonation,
		"EndImpersonation":   endImpersonation,

		"AnonymizeUser": anonymizeUser,

		"StartJob":     startJob,
		"RetryMessage": retryMessage,
	}
}

// faces returns the interfaces of stores.
func faces() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[store.Store](), reflect.TypeFor[store.FactorStore](), reflect.TypeFor[store.Journal](),
		reflect.TypeFor[store.ProjectStore](), reflect.TypeFor[store.AdminStore](),
	}
}

// changing returns the methods of an interface that take a Change.
func changing(face reflect.Type) []string {
	var names []string
	for i := range face.NumMethod() {
		m := face.Method(i)
		for p := range m.Type.NumIn() {
			if t := m.Type.In(p); t.Kind() == reflect.Struct {
				if f, ok := t.FieldByName("Change"); ok && f.Type == reflect.TypeFor[store.Change]() {
					names = append(names, m.Name)
				}
			}
		}
	}
	return names
}

// atEveryMethod creates a check for each method of the store that takes a Change. A method that
// is missing from the list fails.
func atEveryMethod(has *bench, check func(b *bench, prepare func(*world) attempt)) checks {
	all, known := checks{}, doors()
	for _, face := range faces() {
		if found(has.under, face) == "none" {
			continue
		}
		for _, method := range changing(face) {
			prepare, ok := known[method]
			all[method] = func(b *bench) {
				need(b, "doors knows this method", ok, true)
				check(b, prepare)
			}
		}
	}
	return all
}

func createUser(w *world) attempt {
	u := w.person()
	nu := w.newUser("")
	nu.User.Identities = []store.Identity{w.identity("p", nu.User.ID)}
	s, t := w.newSession(nu.User.ID), newToken(w.id(), "")
	t.UserID = nu.User.ID
	nu.Session, nu.Tokens = &s, []store.Token{t}
	w.users, w.sessions, w.tokens = append(w.users, nu.User.ID), append(w.sessions, s.ID), append(w.tokens, store.TokenRef{Purpose: t.Purpose, Hash: t.Hash})
	return attempt{user: u, about: nu.User.ID, call: func(ctx context.Context, c store.Change) error {
		_, err := w.CreateUser(ctx, store.CreateUser{Change: c, NewUser: nu})
		return err
	}}
}

// sweeping returns a patch of many fields.
func sweeping() *store.UserPatch {
	return &store.UserPatch{
		FullName: ptr("x"), PasswordHash: ptr("x"), Roles: &[]string{"x"}, Revoke: &store.SessionFilter{},
		DropTokens: []store.Purpose{store.PurposeMagicLink}, DropFactors: true,
	}
}

// settled returns a person with two sessions and a token; ids are the sessions', sorted.
func (w *world) settled() (u store.User, ids []string) {
	w.Helper()
	u = w.person()
	ids = []string{w.device(u.ID).ID, w.device(u.ID).ID}
	w.secret(u.ID, 0)
	slices.Sort(ids)
	return w.as(u.ID), ids
}

func updateUser(w *world) attempt {
	u, ids := w.settled()
	return attempt{user: u, about: u.ID, ends: ids, call: func(ctx context.Context, c store.Change) error {
		_, err := w.UpdateUser(ctx, store.UpdateUser{Change: c, UserID: u.ID, Patch: *sweeping()})
		return err
	}}
}

func deleteUser(w *world) attempt {
	u := w.person()
	w.secret(u.ID, 0)
	return attempt{user: u, about: u.ID, call: func(ctx context.Context, c store.Change) error {
		return w.DeleteUser(ctx, store.DeleteUser{Change: c, UserID: u.ID})
	}}
}

func createSession(w *world) attempt {
	u, ids := w.settled()
	s := w.newSession(u.ID)
	s.Device = "device"
	w.sessions = append(w.sessions, s.ID)
	return attempt{user: u, about: u.ID, ends: ids, isNew: true, call: func(ctx context.Context, c store.Change) error {
		_, err := w.CreateSession(ctx, store.CreateSession{Change: c, NewSession: store.NewSession{Session: s, KeepSessions: 1}})
		return err
	}}
}

func advanceSession(w *world) attempt {
	u := w.person()
	s := w.device(u.ID)
	return attempt{user: w.as(u.ID), about: u.ID, call: func(ctx context.Context, c store.Change) error {
		_, _, err := w.AdvanceSession(ctx, store.Advance{Change: c, SessionID: s.ID, IdleUntil: now.Add(2 * minute), IP: "192.0.2.9"})
		return err
	}}
}

func revokeSessions(w *world) attempt {
	u, ids := w.settled()
	return attempt{user: u, about: u.ID, ends: ids, call: func(ctx context.Context, c store.Change) error {
		_, err := w.RevokeSessions(ctx, store.RevokeSessions{Change: c, UserID: u.ID})
		return err
	}}
}

func putToken(w *world) attempt {
	u := w.person()
	old := w.secret(u.ID, 0)
	t := old
	t.Hash = hashOf(w.id())
	w.tokens = append(w.tokens, store.TokenRef{Purpose: t.Purpose, Hash: t.Hash})
	return attempt{user: u, about: u.ID, call: func(ctx context.Context, c store.Change) error {
		return w.PutToken(ctx, store.PutToken{Change: c, Token: t})
	}}
}

func redeemToken(w *world) attempt {
	u, ids := w.settled()
	t := w.secret(u.ID, 0)
	return attempt{user: u, self: true, about: u.ID, ends: ids, call: func(ctx context.Context, c store.Change) error {
		_, _, err := w.RedeemToken(ctx, store.Redemption{Change: c, Purpose: t.Purpose, Hash: t.Hash, Effect: store.Effect{Patch: sweeping()}})
		return err
	}}
}

func tryCode(w *world) attempt {
	u, ids := w.settled()
	t := w.secret(u.ID, 1)
	return attempt{user: u, self: true, about: u.ID, ends: ids, call: func(ctx context.Context, c store.Change) error {
		_, _, err := w.RedeemCode(ctx, store.CodeAttempt{Change: c, Purpose: t.Purpose, Subject: t.Subject, Hash: t.Hash, Effect: store.Effect{Patch: sweeping()}})
		return err
	}}
}
