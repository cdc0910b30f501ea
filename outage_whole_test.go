package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

const (
	isWhole = "whole"
	isTold  = "told"
)

// outageFlow is one operation that is tried with each of its calls of the store failing.
type outageFlow struct {
	opts []auth.Option
	// ready sets the stage. What it returns does the operation and tells what came of it:
	// isWhole, isTold for an outage that is said to be one, or what else. What it promised
	// it looks at once the store is well again.
	ready func(w *world, idp *authtest.Provider, well func()) func() string
	// meanwhile happens right before the call that it is filed under, once.
	meanwhile map[string]func(ctx context.Context, w *world)
}

// Whichever call of an operation fails, whoever asked is told, or has all that success
// promises: never a success of which a part is missing, an empty answer, or nothing.
func TestNoSuccessInAnOutageIsHalf(t *testing.T) {
	t.Parallel()
	if os.Getenv(onPostgres) != "" {
		return // which call fails is the tap's to say, whatever the store
	}
	for name, f := range outageFlows() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls, _ := f.run(t, 0)
			told := false
			for k := 1; k <= len(calls); k++ {
				_, got := f.run(t, k)
				if told = told || got == isTold; got != isWhole && got != isTold {
					t.Errorf("without %s, call %d: %s", calls[k-1], k, got)
				}
			}
			if !told {
				t.Errorf("no failure is told of %v", calls)
			}
		})
	}
}

// run does the operation once, with its k-th call failing, and tells which calls it made.
func (f outageFlow) run(t *testing.T, k int) (calls []string, got string) {
	t.Helper()
	w, tap, idp := tapped(t, append([]auth.Option{sendsAtOnce}, f.opts...)...)
	act := f.ready(w, idp, func() { tap.Reset(storetap.Hooks{}) })
	passed := map[string]bool{}
	tap.Reset(storetap.Hooks{
		Before: func(ctx context.Context, name string, _ int) {
			calls = append(calls, name)
			if do := f.meanwhile[name]; do != nil && !passed[name] {
				passed[name] = true
				do(ctx, w)
			}
		},
		Fault: func(_ context.Context, _ string, n int) storetap.Fault {
			if n == k {
				return storetap.FailsBefore
			}
			return storetap.NoFault
		},
	})
	got = act()
	tap.Reset(storetap.Hooks{})
	if k == 0 && got != isWhole {
		t.Fatalf("with a store that is well: %s", got)
	}
	return calls, got
}

// came is what came of a request: whole if its answer has what it should, in its body, its
// cookies or where it leads.
func (a *answer) came(has string) string {
	all := string(a.body) + a.header.Get("Location") + fmt.Sprint(a.header["Set-Cookie"])
	switch {
	case a.status == http.StatusServiceUnavailable, strings.Contains(a.header.Get("Location"), "error_code=unavailable"):
		return isTold
	case a.status < 400 && strings.Contains(all, has):
		return isWhole
	}
	return fmt.Sprintf("%d %.200s", a.status, all)
}

// cameOf is what came of a call.
func cameOf(err error) string {
	var e *auth.Error
	switch {
	case err == nil:
		return isWhole
	case errors.As(err, &e) && e.Code == auth.CodeUnavailable:
		return isTold
	}
	return err.Error()
}

// edits gives somebody a role, so that each token of theirs rests on what it permits.
func (w *world) edits(id string) { w.patch(id, store.UserPatch{Roles: &[]string{"editor"}}) }

func outageFlows() map[string]outageFlow {
	cookieMode, toApp := auth.WithCookies(auth.CookieOptions{}), auth.WithRedirectURLs("https://app.test/")
	oneSecret := auth.WithSecret([]byte("a secret of the tests', 32 bytes"))
	const ada = "ada@example.com"
	return map[string]outageFlow{
		"page of a magic link": {opts: []auth.Option{cookieMode}, ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
			w.member(ada)
			token := w.magicLink(ada, nil)
			return func() string { return w.do("GET", "/magic-link/verify?token="+token, nil, browser).came(token) }
		}},
		"button of a magic link": {opts: []auth.Option{cookieMode}, ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
			w.edits(w.member(ada).User.ID)
			token := w.magicLink(ada, nil)
			return func() string {
				return w.do("POST", "/magic-link/verify", "token="+token, form, browser).came(accessCookie)
			}
		}},
		"button of a magic link that leads on": {opts: []auth.Option{toApp}, ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
			w.member(ada)
			token := w.magicLink(ada, map[string]any{"redirect_to": "https://app.test/"})
			return func() string { return w.do("POST", "/magic-link/verify", "token="+token, form, browser).came("?code=") }
		}},
		"page of a confirmation": {ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
			w.signUp(ada)
			token := w.linkToken(ada, auth.KindVerifyEmail)
			return func() string { return w.do("GET", "/verify-email?token="+token, nil, browser).came(token) }
		}},
		"button of an invitation": {opts: []auth.Option{cookieMode}, ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
			body := url.Values{"token": {w.invited(ada)}, "password": {goodPassword}}.Encode()
			return func() string { return w.do("POST", "/invitations/accept", body, form, browser).came(accessCookie) }
		}},
		"sending a confirmation again": {ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
			id := w.signUp(ada).User.ID
			w.Inbox.Clear()
			return func() string {
				came := cameOf(w.StartEmailVerification(w.t.Context(), auth.StartEmailVerificationParams{Caller: auth.ByApplication(id)}))
				if came == isWhole && len(w.Inbox.Messages()) == 0 {
					return "nothing was sent"
				}
				return came
			}
		}},
		"page of a notice": {ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
			w.account(ada, goodPassword)
			w.moves(w.again(ada), ada, "thief@example.com")
			token := w.stopToken(ada, auth.KindEmailChanged)
			return func() string { return w.do("GET", "/secure-account?token="+token, nil, browser).came(token) }
		}},
		"undoing what a thief did":      {ready: robbedOfMuch},
		"stopping who knows a password": {ready: knownPassword},
		"taking a number back": {ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
			phone, ada := number, w.member(ada).User.ID
			w.patch(ada, store.UserPatch{Phone: &phone})
			code, request := w.askCode(number)
			return func() string {
				a := w.otpOf(number, code, request)
				if a.status == 200 && decodeAs[session](a).User.ID == ada {
					return "signed in to another's account"
				}
				return a.came(`"access_token":"e`)
			}
		}},
		"confirming a number": {ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
			s := w.member(ada)
			w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(s.AccessToken)).want(200)
			code := w.Mail(w.t, number, auth.KindPhoneCode).Code
			w.edits(s.User.ID)
			return func() string { return w.otp(number, code, bearer(s.AccessToken)).came(`"access_token":"e`) }
		}},
		"linking an identity": {ready: func(w *world, idp *authtest.Provider, _ func()) func() string {
			s, v := w.member(ada), w.visitor(idp)
			to := v.link("github", s, nil)
			idp.SignsIn(authtest.Person{Subject: "9", Email: "ada@work.test", EmailVerified: true})
			back := idp.Authorize(w.t, to)
			w.edits(s.User.ID)
			return func() string { return v.back("github", back).came(`"access_token":"e`) }
		}},
		"enabling a second factor": {ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
			s := w.member(ada)
			setup := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(s.AccessToken)).want(200))
			w.edits(s.User.ID)
			return func() string {
				return w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(setup.Secret, 0)}, bearer(s.AccessToken)).came(`"access_token":"e`)
			}
		}},
		"a refresh": {ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
			s := w.member(ada)
			w.edits(s.User.ID)
			return func() string { return w.refresh(s.RefreshToken).came(`"access_token":"e`) }
		}},
		"a login to an account that changes": {
			ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
				w.edits(w.member(ada).User.ID)
				return func() string { return w.login(ada, goodPassword).came(`"access_token":"e`) }
			},
			meanwhile: map[string]func(context.Context, *world){"CreateSession": func(ctx context.Context, w *world) {
				u, err := w.Store.User(ctx, store.ByEmail(ada))
				if err != nil {
					w.t.Error(err)
				}
				c := store.Change{Now: w.Clock.Now(), By: auth.Authority{System: "test"}}
				link := &auth.Identity{ID: uuid.NewString(), Provider: "github", Subject: "9", CreatedAt: c.Now, LastSignInAt: c.Now}
				if _, err := w.Store.UpdateUser(ctx, store.UpdateUser{Change: c, UserID: u.ID, Patch: store.UserPatch{Link: link}}); err != nil {
					w.t.Error(err)
				}
			}},
		},
		"a refresh while all is switched off": {opts: []auth.Option{oneSecret}, ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
			s, o := w.member(ada), w.beside(w.Store, oneSecret, auth.WithSettings(auth.Settings{Enabled: auth.Off}))
			w.patch(s.User.ID, store.UserPatch{Roles: &[]string{auth.RoleOwner}})
			return func() string { return o.refresh(s.RefreshToken).came(`"access_token":"e`) }
		}},
		"a login while all is switched off": {opts: []auth.Option{oneSecret}, ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
			s, o := w.member(ada), w.beside(w.Store, oneSecret, auth.WithSettings(auth.Settings{Enabled: auth.Off}))
			w.patch(s.User.ID, store.UserPatch{Roles: &[]string{auth.RoleOwner}})
			return func() string { return o.login(ada, goodPassword).came(`"access_token":"e`) }
		}},
		"acting as somebody": {ready: func(w *world, _ *authtest.Provider, _ func()) func() string {
			to, err := url.Parse(w.actsAs(w.member("eve@example.com"), w.member(ada).User.ID))
			if err != nil {
				w.t.Fatal(err)
			}
			return func() string { return w.exchange(to.Query().Get("code"), "").came(`"access_token":"e`) }
		}},
	}
}

// actsAs begins an impersonation of somebody with a role, and returns where it leads.
func (w *world) actsAs(actor session, id string) string {
	w.t.Helper()
	kit, ctx, now := host.Of(w), w.t.Context(), w.Clock.Now()
	w.edits(id)
	i := store.Impersonation{
		ID: kit.NewSessionID(), UserID: id, ActorID: actor.User.ID, ActorSessionID: w.claimsOf(actor).SessionID,
		CreatedAt: now, ExpiresAt: now.Add(auth.ImpersonationLife), Reason: "to see",
	}
	st, _ := store.Capability[store.ImpersonationStore](w.Store)
	if err := st.BeginImpersonation(ctx, store.BeginImpersonation{Change: kit.Change(ctx, byOperator()), Impersonation: i}); err != nil {
		w.t.Fatal(err)
	}
	to, err := kit.ImpersonationURL(ctx, byOperator(), i.ID, "https://app.test/")
	if err != nil {
		w.t.Fatal(err)
	}
	return to
}

// robbedOfMuch is an account that a thief moved to an address of theirs and gave more ways
// in; the owner's address is another's by now, who never proved it.
func robbedOfMuch(w *world, _ *authtest.Provider, well func()) func() string {
	const ada = "ada@example.com"
	id := w.account(ada, goodPassword).ID
	w.Clock.Advance(time.Hour)
	thief := w.again(ada)
	w.Clock.Advance(time.Minute)
	w.moves(thief, ada, "thief@example.com")
	token := w.stopToken(ada, auth.KindEmailChanged)
	w.do("POST", "/signup", map[string]any{"email": ada, "password": "the attacker's horse"}).want(200)
	at := w.Clock.Now()
	for _, name := range []string{"google", "github"} {
		w.patch(id, store.UserPatch{Link: &auth.Identity{ID: uuid.NewString(), Provider: name, Subject: "666", CreatedAt: at, LastSignInAt: at}})
	}
	w.enrol(thief.AccessToken)
	return func() string {
		came := w.do("POST", "/secure-account", map[string]any{"token": token}).came("")
		well()
		u, err := w.Store.User(w.t.Context(), store.ByID(id))
		if came == isWhole && (err != nil || u.Email != ada || u.MFAEnabled || len(u.Identities) > 0 || w.alive(thief.AccessToken)) {
			return fmt.Sprintf("left: %+v, %v", u, err)
		}
		return came
	}
}

// knownPassword is an account in which a thief, by a session of the mailbox, asked for
// another address, and signed in with the password since.
func knownPassword(w *world, _ *authtest.Provider, well func()) func() string {
	const ada = "ada@example.com"
	w.account(ada, goodPassword)
	w.Clock.Advance(time.Hour)
	thief := w.do("POST", "/magic-link/verify", map[string]any{"token": w.magicLink(ada, nil)}).session()
	w.Clock.Advance(time.Minute)
	w.again(ada)
	w.do("PATCH", "/me", map[string]any{"email": "thief@example.com"}, bearer(thief.AccessToken)).want(200)
	token := w.stopToken(ada, auth.KindEmailChangeRequested)
	return func() string {
		came := w.do("POST", "/secure-account", map[string]any{"token": token}).came("")
		well()
		if came == isWhole && w.login(ada, goodPassword).status == 200 {
			return "the password that is known is good still"
		}
		return came
	}
}
