package service_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// A role that is removed while an invitation takes an account over is not restored by it.
func TestTakenRoleDoesNotComeBackByAnInvitation(t *testing.T) {
	w, tap, _ := harness.NewTappedWorld(t)
	const ada = "ada@example.com"
	id := w.PostSignUp(ada).User.ID
	edits(w, id)
	token := w.Invited(ada)
	harness.BeforeCall(tap, "RedeemToken", func() { w.Patch(id, store.UserPatch{Roles: &[]string{}}) })
	w.Do("POST", "/invitations/accept", map[string]any{"token": token, "password": harness.OwnersPassword}).Want(200)
	u, err := w.Store.User(t.Context(), store.ByID(id))
	if err != nil || !u.EmailVerified() || slices.Contains(u.Roles, "editor") {
		t.Errorf("%+v, %v", u, err)
	}
}

// A device that loses its trust before its session is created needs the second factor.
func TestTrustThatEndsDuringASignIn(t *testing.T) {
	w, tap, _ := harness.NewTappedWorld(t, harness.TrustsDevices())
	e := w.Enrol(w.Do("POST", "/signup", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Laptop)).Session().AccessToken)
	w.Trust(e)
	if !w.Passes(harness.OnDevice(harness.Laptop)) {
		t.Fatal("not trusted")
	}
	id, lost := w.ClaimsOf(e.Session).UserID, false
	tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
		if method != "CreateSession" || lost {
			return
		}
		lost = true
		change := store.UpdateUser{Change: w.ChangeByTest(), UserID: id, Patch: store.UserPatch{DropDevices: true}}
		if _, err := w.Store.UpdateUser(ctx, change); err != nil {
			t.Error(err)
		}
	}})
	if w.Passes(harness.OnDevice(harness.Laptop)) || !lost {
		t.Error("signed in by the password alone")
	}
}

// While all is switched off, a user with unreadable permissions cannot sign in.
func TestSwitchedOffLetsNobodyInUnread(t *testing.T) {
	w, tap, _ := harness.NewTappedWorld(t)
	const ada = "ada@example.com"
	edits(w, w.PostSignUp(ada).User.ID)
	o, failed := beside(w, tap, auth.WithSettings(auth.Settings{Enabled: auth.Off})), false
	tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, _ int) storetap.Fault {
		if method != "Roles" || failed {
			return storetap.NoFault
		}
		failed = true
		return storetap.FailsBefore
	}})
	if o.PostLogin(ada, harness.GoodPassword).Want(503, auth.CodeUnavailable); !failed {
		t.Error("nothing was read")
	}
	o.PostLogin(ada, harness.GoodPassword).Want(404, auth.CodeNotFound)
}

// New refuses an origin that no browser sends.
func TestNewRefusesOriginsThatNoBrowserSends(t *testing.T) {
	for _, o := range []string{"https://app.test?x", "https://app.test#x"} {
		if got := harness.Refusal(t, auth.WithCORS(o)); !strings.Contains(got, "WithCORS: ") {
			t.Errorf("%s: %s", o, got)
		}
	}
}
