package takeover_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// robbed is an account with an address that a thief's session has replaced. It has the
// tokens of the owner's notice and of a notice that the thief got meanwhile.
type robbed struct {
	*harness.World
	id             string
	thief          harness.Session
	owners, theirs string
}

func robbery(t *testing.T, opts ...auth.Option) *robbed {
	t.Helper()
	w := harness.NewWorld(t, append([]auth.Option{harness.SendsAtOnce}, opts...)...)
	r := &robbed{World: w, id: w.Account("ada@example.com", harness.GoodPassword).ID}
	w.Clock.Advance(time.Hour)
	r.thief = w.SignInAgain("ada@example.com")
	w.Clock.Advance(time.Minute)
	w.ChangeEmailTo(r.thief, "ada@example.com", "thief@example.com")
	r.owners = w.StopToken("ada@example.com", auth.KindEmailChanged)
	w.Clock.Advance(time.Minute)
	w.Do("PATCH", "/me", map[string]any{"email": "x@example.com"}, harness.Bearer(r.thief.AccessToken)).Want(200)
	r.theirs = w.StopToken("thief@example.com", auth.KindEmailChangeRequested)
	return r
}

func (r *robbed) user() auth.User {
	r.T.Helper()
	u, err := r.Store.User(r.T.Context(), store.ByID(r.id))
	if err != nil {
		r.T.Fatal(err)
	}
	return u
}

func (r *robbed) uses(token string) *harness.Answer {
	return r.Do("POST", "/secure-account", map[string]any{"token": token})
}

// An account with the former address, but unverified, does not keep it from its owner.
func TestTakeBackFromWhoNeverProved(t *testing.T) {
	const phone = "+4930666666"
	for name, confirm := range map[string]auth.Switch{"sign-up": auth.Off, "unconfirmed": auth.On, "proved number": auth.Off} {
		t.Run(name, func(t *testing.T) {
			r := robbery(t, auth.WithSettings(auth.Settings{RequireConfirmation: confirm}))
			r.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": "the attacker's horse"}).Want(200)
			squatter, err := r.Store.User(t.Context(), store.ByEmail("ada@example.com"))
			if err != nil {
				t.Fatal(err)
			}
			if name == "proved number" {
				at, number := r.Clock.Now(), phone
				r.Patch(squatter.ID, store.UserPatch{Phone: &number, PhoneVerifiedAt: &at})
			}
			r.Inbox.Clear()
			r.uses(r.owners).Want(200)
			if u := r.user(); u.Email != "ada@example.com" || !u.EmailVerified() {
				t.Errorf("the account's address is %q", u.Email)
			}
			r.Do("POST", "/reset-password", map[string]any{"token": r.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": "the owner's horse battery"}).Want(200)
			left, err := r.Store.Credentials(t.Context(), store.ByID(squatter.ID))
			proved := name == "proved number"
			if err != nil || left.User.Email != "" || (left.PasswordHash != "") != proved || (left.User.Phone == phone) != proved {
				t.Errorf("left to the other: %+v, %v", left, err)
			}
		})
	}
}

// Once an address has taken the account back, the links of later addresses are void, even if
// the owner then changes to a newer address. A thief who uses such a link first does not
// void the owner's links.
func TestTakingBackOutranks(t *testing.T) {
	t.Run("later addresses", func(t *testing.T) {
		r := robbery(t)
		r.uses(r.owners).Want(200)
		r.Do("POST", "/reset-password", map[string]any{"token": r.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": "the owner's horse battery"}).Want(200)
		r.Clock.Advance(time.Hour)
		own := r.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "the owner's horse battery"}).Session()
		r.Do("PATCH", "/me", map[string]any{"email": "ada.new@example.com"}, harness.Bearer(own.AccessToken)).Want(200)
		r.uses(r.theirs).Want(400, auth.CodeInvalidToken)
		r.Do("POST", "/verify-email", map[string]any{"token": r.LinkToken("ada.new@example.com", auth.KindChangeEmail)}, harness.Bearer(own.AccessToken)).Want(200) // not dropped
		r.Clock.Advance(5 * 24 * time.Hour)
		r.uses(r.theirs).Want(400, auth.CodeInvalidToken)
		if u := r.user(); u.Email != "ada.new@example.com" {
			t.Errorf("the account's address is %q", u.Email)
		}
	})
	t.Run("not earlier ones", func(t *testing.T) {
		r := robbery(t)
		r.Do("POST", "/verify-email", map[string]any{"token": r.LinkToken("x@example.com", auth.KindChangeEmail)}, harness.Bearer(r.thief.AccessToken)).Want(200)
		r.uses(r.theirs).Want(200)
		if u := r.user(); u.Email != "thief@example.com" {
			t.Fatalf("the account's address is %q", u.Email)
		}
		r.Clock.Advance(time.Hour)
		r.uses(r.owners).Want(200)
		if u := r.user(); u.Email != "ada@example.com" {
			t.Errorf("the account's address is %q", u.Email)
		}
	})
}

// Additions to the account since the stopped session started are deleted; earlier data stays.
func TestStopUndoesWhatTheSessionAdded(t *testing.T) {
	const phone = "+4930666666"
	grow := func(r *robbed) string {
		at, number := r.Clock.Now(), phone
		r.Patch(r.id, store.UserPatch{Phone: &number, PhoneVerifiedAt: &at})
		for _, name := range []string{"google", "github"} {
			r.Patch(r.id, store.UserPatch{Link: &auth.Identity{ID: uuid.NewString(), Provider: name, Subject: "666", CreatedAt: at, LastSignInAt: at}})
		}
		r.Clock.Advance(time.Minute)
		return r.Enrol(r.thief.AccessToken).Secret
	}
	t.Run("after", func(t *testing.T) {
		r := robbery(t)
		grow(r)
		r.Fired()
		r.uses(r.owners).Want(200)
		r.Mu.Lock()
		if of := []string{r.Events[0].Provider, r.Events[1].Provider}; !slices.Contains(of, "google") || !slices.Contains(of, "github") {
			t.Errorf("the identities that went are of %q", of)
		}
		r.Mu.Unlock()
		r.WantEvents(auth.EventIdentityUnlinked, auth.EventIdentityUnlinked, auth.EventUserUpdated, auth.EventMFADisabled, auth.EventAccountSecured, auth.EventEmailChanged)
		if u := r.user(); u.Phone != "" || u.PhoneVerified() || u.MFAEnabled || len(u.Identities) != 0 || u.Email != "ada@example.com" {
			t.Errorf("left: %+v", u)
		}
		r.Do("POST", "/reset-password", map[string]any{"token": r.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": "the owner's horse battery"}).Want(200)
		r.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "the owner's horse battery"}).Want(200)
	})
	t.Run("before", func(t *testing.T) {
		r := robbery(t)
		r.uses(r.owners).Want(200) // the account is the owner's, who adds to it
		r.Do("POST", "/reset-password", map[string]any{"token": r.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": harness.GoodPassword}).Want(200)
		r.Clock.Advance(time.Minute)
		r.thief = r.SignInAgain("ada@example.com")
		secret := grow(r)
		r.Clock.Advance(time.Hour)
		later := r.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword, "totp_code": r.Code(secret, 0)}).Session()
		r.Inbox.Clear()
		r.Do("PATCH", "/me", map[string]any{"email": "y@example.com"}, harness.Bearer(later.AccessToken)).Want(200)
		r.uses(r.StopToken("ada@example.com", auth.KindEmailChangeRequested)).Want(200)
		if u := r.user(); u.Phone != phone || !u.MFAEnabled || len(u.Identities) != 2 {
			t.Errorf("left: %+v", u)
		}
	})
}

// The reset that a mailed link promises is sent, also if its reader leaves.
func TestAnswersFollowWhoeverLeaves(t *testing.T) {
	tap := storetap.New(harness.NewStore(t))
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}}
	w.Env = authtest.NewOn(t, tap, auth.WithHooks(auth.Hooks{OnEvent: w.Record}), harness.SendsAtOnce)
	s := w.Member("ada@example.com")
	w.Do("PATCH", "/me", map[string]any{"email": "b@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
	token := w.StopToken("ada@example.com", auth.KindEmailChangeRequested)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	tap.Reset(storetap.Hooks{Leave: leave, Fault: func(_ context.Context, m string, _ int) storetap.Fault {
		if m == "RedeemToken" {
			return storetap.LeavesAfter
		}
		return storetap.NoFault
	}})
	if err := w.SecureAccount(ctx, auth.SecureAccountParams{Token: token}); err != nil {
		t.Error(err)
	}
	tap.Reset(storetap.Hooks{})
	w.LinkToken("ada@example.com", auth.KindResetPassword)
}

// The reset that a mailed link promises is sent, even if drawing from every limit fails once
// the link is used up.
func TestAnswersSurviveFailingLimits(t *testing.T) {
	for name, fault := range map[string]storetap.Fault{"not drawn": storetap.FailsBefore, "drawn, and not told": storetap.FailsAfter} {
		t.Run(name, func(t *testing.T) {
			tap := storetap.New(harness.NewStore(t))
			w := &harness.World{T: t, Log: &harness.SyncBuffer{}}
			w.Env = authtest.NewOn(t, tap, auth.WithHooks(auth.Hooks{OnEvent: w.Record}), harness.SendsAtOnce)
			s := w.Member("ada@example.com")
			w.Do("PATCH", "/me", map[string]any{"email": "b@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
			tokens := map[string]any{"token": w.StopToken("ada@example.com", auth.KindEmailChangeRequested)}
			used, failed := false, 0
			tap.Reset(storetap.Hooks{
				After: func(_ context.Context, m string, _ int, err error) { used = used || m == "RedeemToken" && err == nil },
				Fault: func(_ context.Context, m string, _ int) storetap.Fault {
					if m == "Take" && used {
						failed++
						return fault
					}
					return storetap.NoFault
				},
			})
			w.Do("POST", "/secure-account", tokens).Want(200)
			tap.Reset(storetap.Hooks{})
			w.LinkToken("ada@example.com", auth.KindResetPassword)
			if failed == 0 {
				t.Error("nothing failed")
			}
		})
	}
}

// "This wasn't me" sends its reset despite strangers' requests, and promises it only if it is sent.
func TestDisownSendsItsReset(t *testing.T) {
	const promise = "We have sent you a link"
	w := harness.NewWorld(t, harness.SendsAtOnce)
	disown := func(email string, strangers int) string {
		token := w.LinkToken(email, auth.KindVerifyEmail)
		for range strangers {
			w.Do("POST", "/forgot-password", map[string]any{"email": email}).Want(200)
			w.Clock.Advance(time.Minute)
		}
		w.Inbox.Clear()
		return string(w.Do("POST", "/verify-email", "token="+token+"&disown=1", harness.Form, harness.Browser).Want(200).Body)
	}
	w.PostSignUp("ada@example.com")
	if page := disown("ada@example.com", 5); !strings.Contains(page, promise) {
		t.Errorf("page %s", page)
	}
	w.LinkToken("ada@example.com", auth.KindResetPassword)

	w = harness.NewWorld(t, harness.SendsAtOnce, auth.WithRateLimits(auth.RateLimits{NoticesPerAddress: auth.Rate{Burst: 1, Per: 24 * time.Hour}}))
	s := w.PostSignUp("bob@example.com")
	if page := disown("bob@example.com", 0); !strings.Contains(page, promise) {
		t.Errorf("page %s", page)
	}
	w.Patch(s.User.ID, store.UserPatch{EmailVerifiedAt: new(time.Time)})
	w.Clock.Advance(time.Hour)
	if err := w.StartEmailVerification(t.Context(), auth.StartEmailVerificationParams{Caller: auth.ByApplication(s.User.ID)}); err != nil {
		t.Fatal(err)
	}
	if page := disown("bob@example.com", 0); strings.Contains(page, promise) {
		t.Errorf("page %s", page)
	}
}

// An owner who takes the address back waits for a new acceptance, because the former mailbox
// may have another reader by now. The account keeps everything that needs no acceptance: it
// can sign in, and its holder can delete it.
func TestTakingBackEndsAnAcceptance(t *testing.T) {
	r := robbery(t, auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
	owner := []string{auth.RoleOwner}
	r.Patch(r.id, store.UserPatch{Roles: &owner, Accept: true})
	login := func(email string) harness.Session {
		return r.PostLogin(email, harness.GoodPassword).Session()
	}
	if s := login("thief@example.com"); !slices.Equal(s.User.Roles, owner) {
		t.Fatalf("before: %q", s.User.Roles)
	}
	r.uses(r.owners).Want(200)
	reset := r.LinkToken("ada@example.com", auth.KindResetPassword)
	r.Do("POST", "/reset-password", map[string]any{"token": reset, "new_password": harness.GoodPassword}).Want(200)
	s := login("ada@example.com")
	if u := r.user(); len(s.User.Roles) != 0 || u.Accepted(r.Clock.Now()) || !slices.Equal(u.Roles, owner) {
		t.Errorf("afterwards %q, stored %q", s.User.Roles, u.Roles)
	}
	r.Do("DELETE", "/me", nil, harness.Bearer(s.AccessToken)).Want(204)
}
