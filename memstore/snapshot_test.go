package memstore_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

func open(t *testing.T, path string) *memstore.Store {
	t.Helper()
	s, err := memstore.Open(path)
	ok(t, err)
	return s
}

// reopened saves a store and reads it again.
func reopened(t *testing.T, s *memstore.Store, path string) *memstore.Store {
	t.Helper()
	ok(t, s.Save(t.Context()))
	return open(t, path)
}

func TestSnapshotOfUser(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "auth.json")
	s := open(t, path)
	u := store.User{
		ID: userID, Email: "Ada@example.com", EmailVerifiedAt: now, Phone: "+4930123456", PhoneVerifiedAt: now.Add(1), FullName: "Ada",
		UserMetadata: map[string]any{"a": "b"}, AppMetadata: map[string]any{"c": []any{"d"}}, Roles: []string{store.RoleOwner}, AcceptedSequence: 1,
		Identities: []store.Identity{{ID: endedID, Provider: "p", Subject: "s", Email: "x@example.com", CreatedAt: now, LastSignInAt: now}},
		CreatedAt:  now, UpdatedAt: now, LastSignInAt: now, BannedUntil: now.Add(-time.Hour),
	}
	_, err := s.CreateUser(ctx, store.CreateUser{Change: system(now), NewUser: store.NewUser{User: u, PasswordHash: "hash"}})
	ok(t, err)
	_, err = s.UpdateUser(ctx, store.UpdateUser{Change: system(now), UserID: userID, Patch: store.UserPatch{FullName: ptr("Ada L."), Roles: &[]string{"r"}}})
	ok(t, err)
	_, err = s.UpdateUser(ctx, store.UpdateUser{Change: system(now), UserID: userID, Patch: store.UserPatch{FullName: ptr("Ada K.")}})
	ok(t, err)
	for _, id := range []string{sessionID, endedID} {
		sess := newSession(id)
		sess.Device = "device"
		_, err := s.CreateSession(ctx, store.CreateSession{Change: system(now), NewSession: store.NewSession{Session: sess}})
		ok(t, err)
	}
	_, err = s.RevokeSessions(ctx, store.RevokeSessions{Change: system(now), UserID: userID, Filter: store.SessionFilter{ID: endedID}})
	ok(t, err)
	ok(t, s.PutFactor(ctx, store.PutFactor{Change: system(now), Factor: store.Factor{ID: "f", UserID: userID, Kind: store.FactorTOTP, Required: true, Secret: []byte("s"), CreatedAt: now}}))
	_, err = s.EnableFactor(ctx, store.EnableFactor{Change: system(now), UserID: userID, FactorID: "f", State: []byte("7"), Recovery: [][]byte{hash(1), hash(2)}, Completion: store.Completion{Raise: &store.RaisedLevel{SessionID: sessionID}}})
	ok(t, err)
	onDevice := func(key store.UserKey) store.UserKey { key.Device = "device"; return key }
	want, err := s.Credentials(ctx, onDevice(store.ByID(userID)))
	ok(t, err)
	if !want.KnownDevice {
		t.Error("the device is not known")
	}
	if want.User.Revision != 3 || want.User.CredentialRevision != 2 {
		t.Fatalf("revisions %d and %d", want.User.Revision, want.User.CredentialRevision)
	}
	factors, err := s.Factors(ctx, userID)
	ok(t, err)

	again := reopened(t, s, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for name, key := range map[string]store.UserKey{
		"id": store.ByID(userID), "email": store.ByEmail("ada@EXAMPLE.com"), "phone": store.ByPhone("+4930123456"), "identity": store.ByIdentity("p", "s"),
	} {
		if got, err := again.Credentials(ctx, onDevice(key)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("by %s: %+v, %v, want %+v", name, got, err, want)
		}
	}
	if got, err := again.Factors(ctx, userID); err != nil || !reflect.DeepEqual(got, factors) || got.RecoveryLeft != 2 || string(got.List[0].State) != "7" {
		t.Errorf("factors %+v, %v, want %+v", got, err, factors)
	}
	got, _, err := again.Session(ctx, sessionID, now)
	if err != nil || got.AAL != store.LevelAAL2 {
		t.Errorf("session %+v, %v", got, err)
	}
	_, _, err = again.Session(ctx, endedID, now)
	is(t, err, store.ErrSessionEnded)
	left, err := again.UseRecoveryCode(ctx, store.UseRecoveryCode{Change: system(now), UserID: userID, Hashes: [][]byte{hash(2)}})
	if err != nil || left.RecoveryLeft != 1 {
		t.Errorf("%d recovery codes left, %v", left.RecoveryLeft, err)
	}
}

func TestSnapshotOfTheRest(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "auth.json")
	s := open(t, path)
	c := system(now)
	c.Events = []store.OutcomeEvent{event(store.OutcomeDone, 2, now), event(store.OutcomeDone, 1, now)}
	c.Messages = []store.SealedMessage{{ID: "m", Token: store.TokenRef{Purpose: store.PurposePhoneCode, Hash: hash(1)}, Body: []byte("b"), CreatedAt: now, NextAt: now, ExpiresAt: now.Add(time.Hour)}}
	c.Idempotency = &store.Idempotency{Actor: "a", Route: "r", Key: "k", RequestHash: hash(3), Result: []byte("res"), ExpiresAt: now.Add(time.Hour)}
	put := store.PutToken{Change: c, Token: store.Token{Purpose: store.PurposePhoneCode, Hash: hash(1), Subject: "s", ExpiresAt: now.Add(time.Hour), MaxAttempts: 3}}
	ok(t, s.PutToken(ctx, put))
	_, _, err := s.RedeemCode(ctx, store.CodeAttempt{Change: system(now), Purpose: store.PurposePhoneCode, Subject: "s", Hash: hash(9)})
	is(t, err, store.ErrWrongCode)
	_, err = s.PutRole(ctx, store.PutRole{Change: system(now), Role: store.RolePermissions{Name: "b", Permissions: []string{"p"}}})
	ok(t, err)
	_, err = s.PutRole(ctx, store.PutRole{Change: system(now), Role: store.RolePermissions{Name: "a"}})
	ok(t, err)
	failing := system(now)
	failing.Messages = []store.SealedMessage{{ID: "f", Body: []byte("f"), CreatedAt: now, NextAt: now, ExpiresAt: now.Add(time.Hour), Log: store.MessageLog{Kind: store.KindNewDevice, To: "a"}}}
	_, err = s.PutRole(ctx, store.PutRole{Change: failing, Role: store.RolePermissions{Name: "c"}})
	ok(t, err)
	roles, err := s.Roles(ctx)
	ok(t, err)
	ok(t, s.FinishMessage(ctx, store.FinishMessage{ID: "f", State: store.MessageFailed, At: now, Error: "e", KeepUntil: now.Add(time.Hour)}))
	noted, err := s.ListMessages(ctx, store.MessageQuery{Limit: 9})
	ok(t, err)
	key := store.PutKey{Change: system(now), Key: store.APIKey{ID: "k", Name: "n", Hash: hash(5), Scopes: []string{"s"}}}
	_, err = s.PutKey(ctx, key)
	ok(t, err)
	wantKey, err := s.PutKey(ctx, key)
	ok(t, err)

	again := reopened(t, s, path)
	is(t, again.PutToken(ctx, put), store.ErrRepeated)
	if got, err := again.Roles(ctx); err != nil || !reflect.DeepEqual(got, roles) || got.Revision != 3 {
		t.Errorf("roles %+v, %v, want %+v", got, err, roles)
	}
	if got, err := again.Key(ctx, "k"); err != nil || !reflect.DeepEqual(got, wantKey) || got.Revision != 1 {
		t.Errorf("key %+v, %v, want %+v", got, err, wantKey)
	}
	other := key
	other.Key.ID = "other"
	_, err = again.PutKey(ctx, other)
	is(t, err, store.ErrConflict)
	if got, err := again.Events(ctx, store.EventQuery{}); err != nil || len(got) != 2 || got[0].ID < got[1].ID {
		t.Errorf("events %+v, %v", got, err)
	}
	if got, err := again.ClaimMessages(ctx, store.ClaimMessages{Now: now, Until: now.Add(1), Limit: 9}); err != nil || len(got) != 1 || string(got[0].Body) != "b" {
		t.Errorf("messages %+v, %v", got, err)
	}
	if got, err := again.ListMessages(ctx, store.MessageQuery{Limit: 9}); err != nil || len(got) != 1 || !reflect.DeepEqual(got, noted) {
		t.Errorf("records %+v, %v, want %+v", got, err, noted)
	}
	ok(t, again.RetryMessage(ctx, store.RetryMessage{Change: system(now), ID: "f"}))
	for range 2 {
		_, _, err = again.RedeemCode(ctx, store.CodeAttempt{Change: system(now), Purpose: store.PurposePhoneCode, Subject: "s", Hash: hash(9)})
		is(t, err, store.ErrWrongCode)
	}
	_, _, err = again.RedeemCode(ctx, store.CodeAttempt{Change: system(now), Purpose: store.PurposePhoneCode, Subject: "s", Hash: hash(1)})
	is(t, err, store.ErrTooManyAttempts)
}

func TestDamagedSnapshot(t *testing.T) {
	for name, content := range map[string]string{
		"cut": `{"version":2,"users":[`, "other version": `{"version":1}`, "empty": "",
		"a session of nobody": `{"version":2,"sessions":[{"session":{"ID":"x","UserID":"y"}}]}`,
		"a token of nobody":   `{"version":2,"tokens":[{"UserID":"y"}]}`,
		"one id twice":        `{"version":2,"users":[{"user":{"ID":"x"}},{"user":{"ID":"x"}}]}`,
		"one address twice":   `{"version":2,"users":[{"user":{"ID":"x","Email":"a@b.c"}},{"user":{"ID":"y","Email":"A@b.c"}}]}`,
	} {
		path := filepath.Join(t.TempDir(), "auth.json")
		ok(t, os.WriteFile(path, []byte(content), 0o600))
		if _, err := memstore.Open(path); err == nil {
			t.Errorf("%s: opened all the same", name)
		}
	}
	if err := memstore.New().Save(t.Context()); err == nil {
		t.Error("saved to nowhere")
	}
}
