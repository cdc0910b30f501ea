package service_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// exported is the document of GET /me/export.
type exported struct {
	User struct {
		ID, Email  string
		Identities []any
	}
	HasPassword bool `json:"has_password"`
	Sessions    []struct {
		ID      string
		Current bool
	}
	Factors   []map[string]any
	CodesLeft int `json:"recovery_codes_left"`
	Devices   []any
	Pending   []struct{ Purpose store.Purpose }
	Events    []auth.Event
}

func export(w *harness.World, access string) exported {
	w.T.Helper()
	a := w.Do("GET", "/me/export", nil, harness.Bearer(access)).Want(200)
	if got := a.Header.Get("Content-Disposition"); !strings.HasPrefix(got, "attachment;") {
		w.T.Errorf("Content-Disposition %q", got)
	}
	return harness.DecodeAs[exported](a)
}

// The export has all data of the caller, none of another user's, and no secret.
func TestExport(t *testing.T) {
	w := harness.NewWorld(t)
	eve := w.PostSignUp("eve@example.com")
	e := w.Enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password, "totp_code": w.Later(e.Secret)}, harness.Header{Name: "X-Device-Id", Value: "ada-s-own-device-1"}).Want(200)
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
	reset := w.LinkToken("ada@example.com", auth.KindResetPassword)
	got := export(w, e.AccessToken)
	if got.User.Email != "ada@example.com" || !got.HasPassword || len(got.Sessions) != 2 || len(got.Factors) != 1 || got.CodesLeft != 10 || len(got.Devices) != 1 {
		t.Errorf("export %+v", got)
	}
	if !slices.ContainsFunc(got.Pending, func(p struct{ Purpose store.Purpose }) bool { return p.Purpose == store.PurposeReset }) {
		t.Errorf("pending %+v", got.Pending)
	}
	if len(got.Events) == 0 || slices.ContainsFunc(got.Events, func(e auth.Event) bool { return e.UserID != got.User.ID }) {
		t.Errorf("events %+v", got.Events)
	}
	c, err := w.Store.Credentials(t.Context(), store.ByEmail("ada@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	body := string(w.Do("GET", "/me/export", nil, harness.Bearer(e.AccessToken)).Want(200).Body)
	for what, secret := range map[string]string{
		"the hash": c.PasswordHash, "the factor": e.Secret, "a recovery code": e.Recovery[0], "a reset link": reset, "the device": "ada-s-own-device-1",
		"the refresh token": e.RefreshToken, "another's address": "eve@example.com", "another's id": eve.User.ID,
	} {
		if strings.Contains(body, secret) {
			t.Errorf("%s is in the export", what)
		}
	}
	if other := export(w, eve.AccessToken); other.User.ID != eve.User.ID || len(other.Factors) != 0 || len(other.Devices) != 0 {
		t.Errorf("another's export %+v", other)
	}
	w.Clock.Advance(16 * time.Minute)
	late := w.PostRefresh(e.RefreshToken).Session()
	w.Do("GET", "/me/export", nil, harness.Bearer(late.AccessToken)).Want(403, auth.CodeReauthNeeded)
}

// Events beyond one page come once each, newest first. Other actors and their locations are
// not included.
func TestExportOfManyEvents(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	admin := w.PostSignUp("admin@example.com")
	const many = 1201
	for i := range many {
		name := strings.Repeat("x", i%7+1)
		e := auth.Event{ID: harness.NewID(w.Auth), Type: auth.EventUserUpdated, At: w.Clock.Now(), UserID: s.User.ID, Actor: auth.Actor{Kind: store.ActorUser, ID: admin.User.ID}, Client: auth.Client{UserAgent: "the admin's"}}
		c := store.Change{Now: w.Clock.Now(), By: auth.Authority{System: "test"}, Events: []store.OutcomeEvent{{Event: e}}}
		if _, err := w.Store.UpdateUser(t.Context(), store.UpdateUser{Change: c, UserID: s.User.ID, Patch: store.UserPatch{FullName: &name}}); err != nil {
			t.Fatal(err)
		}
	}
	a := w.Do("GET", "/me/export", nil, harness.Bearer(s.AccessToken)).Want(200)
	seen := map[string]bool{}
	var last time.Time
	for i, e := range harness.DecodeAs[exported](a).Events {
		if seen[e.ID] || i > 0 && e.At.After(last) {
			t.Fatalf("event %d: %+v", i, e)
		}
		seen[e.ID], last = true, e.At
	}
	if len(seen) < many {
		t.Errorf("%d events", len(seen))
	}
	if bytes.Contains(a.Body, []byte("the admin's")) || bytes.Contains(a.Body, []byte(admin.User.ID)) {
		t.Error("it tells of who acted")
	}
}

// Whenever the session ends while it is read, nothing is handed out.
func TestExportIsReadWithinTheSession(t *testing.T) {
	for k := 1; ; k++ {
		w, tap, _ := harness.NewTappedWorld(t)
		s := w.PostSignUp("ada@example.com")
		by := w.ClaimsOf(s).Caller()
		ended := false
		tap.Reset(storetap.Hooks{Before: func(ctx context.Context, _ string, n int) {
			if n == k {
				ended = true
				c := store.RevokeSessions{Change: store.Change{Now: w.Clock.Now(), By: auth.Authority{System: "test"}}, UserID: s.User.ID}
				if _, err := tap.Inner().RevokeSessions(ctx, c); err != nil {
					t.Error(err)
				}
			}
		}})
		e, err := w.Export(t.Context(), auth.ExportParams{Caller: by})
		tap.Reset(storetap.Hooks{})
		if !ended {
			if err != nil || k < 5 {
				t.Errorf("%d calls, %v", k, err)
			}
			return
		}
		if !errors.Is(err, auth.CodeSessionEnded) {
			t.Errorf("ended before call %d: %+v, %v", k, e, err)
		}
	}
}

// An export from a store without optional interfaces has fewer parts.
func TestExportOfAPlainStore(t *testing.T) {
	w := &harness.World{T: t, Env: authtest.NewOn(t, harness.PlainStore{Store: memstore.New()})}
	if got := export(w, w.LoginAs(t, "ada@example.com").AccessToken); got.User.Email != "ada@example.com" || len(got.Events) != 0 || len(got.Sessions) != 1 {
		t.Errorf("export %+v", got)
	}
}
