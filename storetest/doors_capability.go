package storetest

import (
	"context"
	"errors"

	"github.com/authmount/auth/store"
)

func putFactor(w *world) attempt {
	u := w.person()
	w.pending(u.ID)
	f := w.newFactor(u.ID)
	return attempt{user: w.as(u.ID), about: u.ID, call: func(ctx context.Context, c store.Change) error {
		return w.factors.PutFactor(ctx, store.PutFactor{Change: c, Factor: f})
	}}
}

func enableFactor(w *world) attempt {
	u := w.person()
	s, ended, f := w.device(u.ID), w.device(u.ID), w.pending(u.ID)
	t := w.secret(u.ID, 0)
	return attempt{user: w.as(u.ID), self: true, about: u.ID, ends: []string{ended.ID}, call: func(ctx context.Context, c store.Change) error {
		e := enabling(f, s)
		e.Change, e.Redeem = c, &store.TokenRef{Purpose: t.Purpose, Hash: t.Hash}
		_, err := w.factors.EnableFactor(ctx, e)
		return err
	}}
}

func updateFactor(w *world) attempt {
	u := w.person()
	s, ended, f := w.device(u.ID), w.device(u.ID), w.passkey(u.ID, "key")
	w.enables(f, s)
	return attempt{user: w.as(u.ID), about: u.ID, ends: []string{ended.ID}, call: func(ctx context.Context, c store.Change) error {
		update := requiring(f, true)
		update.Change, update.Label, update.Recovery, update.KeepSession = c, ptr("x"), [][]byte{hashOf("r1")}, s.ID
		_, err := w.factors.UpdateFactor(ctx, update)
		return err
	}}
}

// armed returns a person with an enabled factor.
func (w *world) armed() (store.User, store.Factor) {
	w.Helper()
	u, s, f := w.enrol(w.person())
	w.sessions = append(w.sessions, s.ID)
	return u, f
}

func useFactor(w *world) attempt {
	u, f := w.armed()
	s := w.newSession(u.ID)
	s.AAL = store.LevelAAL2
	_, err := w.signIn(s)
	w.ok(err)
	w.sessions = append(w.sessions, s.ID)
	u = w.as(u.ID)
	return attempt{user: u, about: u.ID, call: func(ctx context.Context, c store.Change) error {
		use := using(f, "101")
		use.Change, use.Secret, use.Raise = c, []byte("anew"), &store.RaisedLevel{SessionID: s.ID, Method: totp}
		_, err := w.factors.UseFactor(ctx, use)
		return err
	}}
}

func useRecoveryCode(w *world) attempt {
	u, _ := w.armed()
	return attempt{user: u, about: u.ID, call: func(ctx context.Context, c store.Change) error {
		_, err := w.factors.UseRecoveryCode(ctx, store.UseRecoveryCode{Change: c, UserID: u.ID, Hashes: [][]byte{hashOf("r1")}})
		return err
	}}
}

func putRecoveryCodes(w *world) attempt {
	u, _ := w.armed()
	return attempt{user: u, about: u.ID, call: func(ctx context.Context, c store.Change) error {
		return w.factors.PutRecoveryCodes(ctx, store.PutRecoveryCodes{Change: c, UserID: u.ID, Hashes: [][]byte{hashOf("n1")}})
	}}
}

func removeFactor(w *world) attempt {
	u, _ := w.armed()
	return attempt{user: u, about: u.ID, call: func(ctx context.Context, c store.Change) error {
		_, err := w.factors.RemoveFactor(ctx, store.RemoveFactor{Change: c, UserID: u.ID})
		return err
	}}
}

func addProof(w *world) attempt {
	u := w.person()
	s := w.device(u.ID)
	return attempt{user: w.as(u.ID), about: u.ID, call: func(ctx context.Context, c store.Change) error {
		_, _, err := w.AddAuthentication(ctx, store.AddAuthentication{Change: c, SessionID: s.ID, Proof: store.AMR{Method: "again", Timestamp: 1}})
		return err
	}}
}

func putRole(w *world) attempt {
	name := w.id()
	return attempt{user: w.person(), call: func(ctx context.Context, c store.Change) error {
		_, err := w.project.PutRole(ctx, store.PutRole{Change: c, Role: store.RolePermissions{Name: name, Permissions: []string{"a:b"}}})
		return err
	}}
}

func deleteRole(w *world) attempt {
	name := w.id()
	_, err := w.project.PutRole(w.ctx(), store.PutRole{Change: by(now), Role: store.RolePermissions{Name: name}})
	w.ok(err)
	return attempt{user: w.person(), call: func(ctx context.Context, c store.Change) error {
		_, err := w.project.DeleteRole(ctx, store.DeleteRole{Change: c, Name: name})
		return err
	}}
}

func putKey(w *world) attempt {
	k := w.newKey()
	_, err := w.project.PutKey(w.ctx(), store.PutKey{Change: by(now), Key: k})
	w.ok(err)
	k.RevokedAt = now
	return attempt{user: w.person(), call: func(ctx context.Context, c store.Change) error {
		_, err := w.project.PutKey(ctx, store.PutKey{Change: c, Key: k})
		return err
	}}
}

func fillLimits(w *world) attempt {
	u, key := w.person(), w.id()
	w.take(now, store.Draw{Key: key, Rate: five, Cost: 1})
	w.drawn = append(w.drawn, key)
	return attempt{user: u, about: u.ID, call: func(ctx context.Context, c store.Change) error {
		return w.admin.FillLimits(ctx, store.FillLimits{Change: c, UserID: u.ID, Fill: []store.Draw{{Key: key, Rate: five, Cost: 5}}})
	}}
}

func createUsers(w *world) attempt {
	rows := []store.ImportedRow{{User: w.newUser("").User}, {User: w.newUser("").User}}
	for _, row := range rows {
		w.users = append(w.users, row.User.ID)
	}
	return attempt{user: w.person(), call: func(ctx context.Context, c store.Change) error {
		results, err := w.admin.CreateUsers(ctx, store.CreateUsers{Change: c, Users: rows})
		return errors.Join(append(results, err)...)
	}}
}
