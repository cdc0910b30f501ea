package service_test

import (
	"context"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// identitiesOf are a user's identities by provider, as the store has them.
func identitiesOf(w *harness.World, id string) map[string]auth.Identity {
	w.T.Helper()
	u, err := w.Store.User(w.T.Context(), store.ByID(id))
	if err != nil {
		w.T.Fatal(err)
	}
	all := map[string]auth.Identity{}
	for _, i := range u.Identities {
		all[i.Provider] = i
	}
	return all
}

// A returning user keeps the same identity, even if another provider uses the same subject.
func TestIdentityStaysTheSame(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	id := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session().User.ID
	w.Clock.Advance(time.Hour)
	w.NewVisitor(idp).SignIn("github", harness.Ada, "").Session()
	before := identitiesOf(w, id)
	w.Clock.Advance(time.Hour)
	for _, name := range []string{"google", "github"} {
		w.NewVisitor(idp).SignIn(name, harness.Ada, "").Session()
	}
	after := identitiesOf(w, id)
	for name, was := range before {
		is := after[name]
		if is.ID != was.ID || !is.CreatedAt.Equal(was.CreatedAt) || !is.LastSignInAt.After(was.LastSignInAt) {
			t.Errorf("%s was %+v, is %+v", name, was, is)
		}
	}
	if len(before) != 2 || len(after) != 2 {
		t.Errorf("%d identities, then %d", len(before), len(after))
	}
}

// Two parallel linkings do not create two identities of one provider.
func TestOneIdentityOfAProviderIsLinkedInFlight(t *testing.T) {
	idp, tap := authtest.StartProvider(t), storetap.New(harness.NewStore(t))
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}, Env: authtest.NewOn(t, tap, auth.WithProvider(idp.GitHub()))}
	idp.Now = w.Clock.Now
	s := w.Member("ada@example.com")
	v := w.NewVisitor(idp)
	to := v.Link("github", s, nil)
	idp.SignsIn(authtest.Person{Subject: "9"})
	back := idp.Authorize(t, to)
	tap.Reset(storetap.Hooks{Before: func(_ context.Context, method string, _ int) {
		if method == "UpdateUser" {
			tap.Reset(storetap.Hooks{})
			w.Patch(s.User.ID, store.UserPatch{Link: &auth.Identity{ID: "0190b7a3-0000-7000-8000-000000000001", Provider: "github", Subject: "10", CreatedAt: w.Clock.Now()}})
		}
	}})
	v.Back("github", back).Want(409, auth.CodeIdentityAlreadyExists)
	if got := identitiesOf(w, s.User.ID); got["github"].Subject != "10" {
		t.Errorf("identities %+v", got)
	}
}

// If the session that requested a link has ended, the callback does not even return a code.
func TestNoCodeForALinkAfterLogout(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	s := w.Member("ada@example.com")
	to := w.NewVisitor(idp).Link("github", s, map[string]any{"redirect_to": "https://app.test/", "code_challenge": harness.ChallengeOf(harness.Verifier)})
	idp.SignsIn(harness.EvilGit)
	w.Do("POST", "/logout", nil, harness.Bearer(s.AccessToken)).Want(204)
	q := w.NewVisitor(idp).Back("github", idp.Authorize(t, to)).Location().Query()
	if q.Has("code") || q.Get("error_code") != string(auth.CodeBadOAuthState) {
		t.Errorf("the redirect says %v", q)
	}
}

// A factor is not set up for an account with credentials that changed since it was read.
func TestEnrolmentInFlightOfAChange(t *testing.T) {
	tap := storetap.New(harness.NewStore(t))
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}, Env: authtest.NewOn(t, tap)}
	s := w.Member("ada@example.com")
	tap.Reset(storetap.Hooks{Before: func(_ context.Context, method string, _ int) {
		if method == "PutFactor" {
			tap.Reset(storetap.Hooks{})
			w.Patch(s.User.ID, store.UserPatch{PasswordHash: &otherHash})
		}
	}})
	w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(s.AccessToken)).Want(401, auth.CodeSessionEnded)
}

// otherHash is the hash of an unknown password.
var otherHash = "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"

// The events of a session, and the hook before it, identify its user.
func TestEventsTellOfTheirSession(t *testing.T) {
	var asked []auth.SignInAttempt
	w := harness.NewWorld(t, auth.WithHooks(auth.Hooks{BeforeSignIn: func(_ context.Context, a auth.SignInAttempt) error {
		asked = append(asked, a)
		return nil
	}}))
	w.Member("ada@example.com")
	s := w.PostLogin("ada@example.com", harness.GoodPassword).Session()
	if len(asked) != 2 || asked[0].User.Email != "ada@example.com" || asked[0].User.ID != s.User.ID || asked[1].User.ID != s.User.ID {
		t.Errorf("asked about %+v", asked)
	}
	w.Enrol(s.AccessToken)
	id, told := w.ClaimsOf(s).SessionID, map[auth.EventType]bool{}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	for _, e := range w.Events {
		if e.SessionID == id {
			told[e.Type] = true
		}
	}
	if !told[auth.EventSignedIn] || !told[auth.EventMFAEnabled] {
		t.Errorf("of the session are %v", told)
	}
}

// If the session that requested a link cannot be read, the answer says so.
func TestLinkWhileTheSessionCannotBeRead(t *testing.T) {
	idp, tap := authtest.StartProvider(t), storetap.New(harness.NewStore(t))
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}, Env: authtest.NewOn(t, tap, auth.WithProvider(idp.GitHub()))}
	idp.Now = w.Clock.Now
	to := w.NewVisitor(idp).Link("github", w.Member("ada@example.com"), map[string]any{"redirect_to": "https://app.test/", "code_challenge": harness.ChallengeOf(harness.Verifier)})
	idp.SignsIn(harness.EvilGit)
	back := idp.Authorize(t, to)
	tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, _ int) storetap.Fault {
		if method == "Session" {
			return storetap.FailsBefore
		}
		return storetap.NoFault
	}})
	if q := w.NewVisitor(idp).Back("github", back).Location().Query(); q.Has("code") || q.Get("error_code") != string(auth.CodeUnavailable) {
		t.Errorf("the redirect says %v", q)
	}
}
