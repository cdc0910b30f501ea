package storetest

import (
	"context"
	"reflect"
	"slices"

	"github.com/authmount/auth"
)

// attempt is a call that succeeds once, if its conditions hold.
type attempt struct {
	user  auth.User // somebody whom conditions can be on, as the store has them
	self  bool      // it uses up a token or code that names the user
	about string    // whom an event without a user is about; empty: nobody
	ends  []string  // the sessions that end by it
	isNew bool      // it makes a session on a device that is new
	call  func(ctx context.Context, c auth.Change) error
}

// doors are the methods that change something, each with what prepares a call.
// An attempt may be prepared again and again in one world.
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
		"TryCode":        tryCode,

		"PutFactor":        putFactor,
		"EnableFactor":     enableFactor,
		"UseTOTPStep":      useTOTPStep,
		"UseRecoveryCode":  useRecoveryCode,
		"PutRecoveryCodes": putRecoveryCodes,
		"RemoveFactor":     removeFactor,
		"RaiseSession":     raiseSession,

		"PutRole":    putRole,
		"DeleteRole": deleteRole,
		"PutKey":     putKey,
		"AddProof":   addProof,

		"CreateUsers": createUsers,
		"PutSettings": putSettings,
		"ClearLimits": clearLimits,

		"EndEverySession":    endEverySession,
		"BeginImpersonation": beginImpersonation,
		"EndImpersonation":   endImpersonation,

		"AnonymizeUser": anonymizeUser,

		"StartJob":     startJob,
		"RetryMessage": retryMessage,
	}
}

// faces are the interfaces of stores.
func faces() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[auth.Store](), reflect.TypeFor[auth.FactorStore](), reflect.TypeFor[auth.EventStore](),
		reflect.TypeFor[auth.OutboxStore](), reflect.TypeFor[auth.RoleStore](), reflect.TypeFor[auth.KeyStore](),
		reflect.TypeFor[auth.ProofStore](), reflect.TypeFor[auth.ExportStore](), reflect.TypeFor[auth.AccountStore](),
		reflect.TypeFor[auth.ImportStore](), reflect.TypeFor[auth.RotationStore](), reflect.TypeFor[auth.StatsStore](), reflect.TypeFor[auth.SettingsStore](),
		reflect.TypeFor[auth.DirectoryStore](), reflect.TypeFor[auth.LimitStore](),
		reflect.TypeFor[auth.ImpersonationStore](), reflect.TypeFor[auth.SessionListStore](),
		reflect.TypeFor[auth.InvitationStore](), reflect.TypeFor[auth.AnonymizeStore](), reflect.TypeFor[auth.JobStore](),
		reflect.TypeFor[auth.MessageLogStore](), reflect.TypeFor[auth.FirstOwnerStore](),
	}
}

// changing are the methods of an interface that take a Change.
func changing(face reflect.Type) []string {
	var names []string
	for i := range face.NumMethod() {
		m := face.Method(i)
		for p := range m.Type.NumIn() {
			if t := m.Type.In(p); t.Kind() == reflect.Struct {
				if f, ok := t.FieldByName("Change"); ok && f.Type == reflect.TypeFor[auth.Change]() {
					names = append(names, m.Name)
				}
			}
		}
	}
	return names
}

// atDoors makes a check of each method that the store has and that takes a
// Change. A method that doors does not know fails.
func atDoors(has *bench, check func(b *bench, prepare func(*world) attempt)) checks {
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
	nu.User.Identities = []auth.Identity{w.identity("p", nu.User.ID)}
	s, t := w.newSession(nu.User.ID), newToken(w.id(), "")
	t.UserID = nu.User.ID
	nu.Session, nu.Tokens = &s, []auth.Token{t}
	w.users, w.sessions, w.tokens = append(w.users, nu.User.ID), append(w.sessions, s.ID), append(w.tokens, auth.TokenRef{Purpose: t.Purpose, Hash: t.Hash})
	return attempt{user: u, about: nu.User.ID, call: func(ctx context.Context, c auth.Change) error {
		_, err := w.CreateUser(ctx, auth.CreateUser{Change: c, NewUser: nu})
		return err
	}}
}

// sweeping is a patch that changes a good deal.
func sweeping() *auth.UserPatch {
	return &auth.UserPatch{
		FullName: ptr("x"), PasswordHash: ptr("x"), Roles: &[]string{"x"}, Revoke: &auth.SessionFilter{},
		DropTokens: []auth.Purpose{auth.PurposeMagicLink}, DropFactors: true,
	}
}

// settled is a person with two devices and a token; ids are the devices', sorted.
func (w *world) settled() (u auth.User, ids []string) {
	w.Helper()
	u = w.person()
	ids = []string{w.device(u.ID).ID, w.device(u.ID).ID}
	w.secret(u.ID, 0)
	slices.Sort(ids)
	return w.as(u.ID), ids
}

func updateUser(w *world) attempt {
	u, ids := w.settled()
	return attempt{user: u, about: u.ID, ends: ids, call: func(ctx context.Context, c auth.Change) error {
		_, err := w.UpdateUser(ctx, auth.UpdateUser{Change: c, UserID: u.ID, Patch: *sweeping()})
		return err
	}}
}

func deleteUser(w *world) attempt {
	u := w.person()
	w.secret(u.ID, 0)
	return attempt{user: u, about: u.ID, call: func(ctx context.Context, c auth.Change) error {
		return w.DeleteUser(ctx, auth.DeleteUser{Change: c, UserID: u.ID})
	}}
}

func createSession(w *world) attempt {
	u, ids := w.settled()
	s := w.newSession(u.ID)
	s.Device = "device"
	w.sessions = append(w.sessions, s.ID)
	return attempt{user: u, about: u.ID, ends: ids, isNew: true, call: func(ctx context.Context, c auth.Change) error {
		_, err := w.CreateSession(ctx, auth.CreateSession{Change: c, Session: s, KeepSessions: 1})
		return err
	}}
}

func advanceSession(w *world) attempt {
	u := w.person()
	s := w.device(u.ID)
	return attempt{user: w.as(u.ID), about: u.ID, call: func(ctx context.Context, c auth.Change) error {
		_, _, err := w.AdvanceSession(ctx, auth.Advance{Change: c, SessionID: s.ID, IdleUntil: now.Add(2 * minute), IP: "192.0.2.9"})
		return err
	}}
}

func revokeSessions(w *world) attempt {
	u, ids := w.settled()
	return attempt{user: u, about: u.ID, ends: ids, call: func(ctx context.Context, c auth.Change) error {
		_, err := w.RevokeSessions(ctx, auth.RevokeSessions{Change: c, UserID: u.ID})
		return err
	}}
}

func putToken(w *world) attempt {
	u := w.person()
	old := w.secret(u.ID, 0)
	t := old
	t.Hash = hashOf(w.id())
	w.tokens = append(w.tokens, auth.TokenRef{Purpose: t.Purpose, Hash: t.Hash})
	return attempt{user: u, about: u.ID, call: func(ctx context.Context, c auth.Change) error {
		return w.PutToken(ctx, auth.PutToken{Change: c, Token: t})
	}}
}

func redeemToken(w *world) attempt {
	u, ids := w.settled()
	t := w.secret(u.ID, 0)
	return attempt{user: u, self: true, about: u.ID, ends: ids, call: func(ctx context.Context, c auth.Change) error {
		_, _, err := w.RedeemToken(ctx, auth.Redemption{Change: c, Purpose: t.Purpose, Hash: t.Hash, Effect: auth.Effect{Patch: sweeping()}})
		return err
	}}
}

func tryCode(w *world) attempt {
	u, ids := w.settled()
	t := w.secret(u.ID, 1)
	return attempt{user: u, self: true, about: u.ID, ends: ids, call: func(ctx context.Context, c auth.Change) error {
		_, _, err := w.TryCode(ctx, auth.TryCode{Change: c, Purpose: t.Purpose, Subject: t.Subject, Hash: t.Hash, Effect: auth.Effect{Patch: sweeping()}})
		return err
	}}
}
