package service_test

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
	"github.com/authmount/auth/internal/harness"
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
	ready func(w *harness.World, idp *authtest.Provider, well func()) func() string
	// meanwhile happens right before the call that it is filed under, once.
	meanwhile map[string]func(ctx context.Context, w *harness.World)
}

// Whichever call of an operation fails, whoever asked is told, or has all that success
// promises: never a success of which a part is missing, an empty answer, or nothing.
func TestNoSuccessInAnOutageIsHalf(t *testing.T) {
	t.Parallel()
	if os.Getenv(harness.OnPostgres) != "" {
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
	w, tap, idp := harness.NewTappedWorld(t, append([]auth.Option{harness.SendsAtOnce}, f.opts...)...)
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
func came(a *harness.Answer, has string) string {
	all := string(a.Body) + a.Header.Get("Location") + fmt.Sprint(a.Header["Set-Cookie"])
	switch {
	case a.Status == http.StatusServiceUnavailable, strings.Contains(a.Header.Get("Location"), "error_code=unavailable"):
		return isTold
	case a.Status < 400 && strings.Contains(all, has):
		return isWhole
	}
	return fmt.Sprintf("%d %.200s", a.Status, all)
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
func edits(w *harness.World, id string) { w.Patch(id, store.UserPatch{Roles: &[]string{"editor"}}) }

func outageFlows() map[string]outageFlow {
	cookieMode, toApp := auth.WithCookies(auth.CookieOptions{}), auth.WithRedirectURLs("https://app.test/")
	oneSecret := auth.WithSecret([]byte("a secret of the tests', 32 bytes"))
	const ada = "ada@example.com"
	return map[string]outageFlow{
		"page of a magic link": {opts: []auth.Option{cookieMode}, ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
			w.Member(ada)
			token := w.MagicLink(ada, nil)
			return func() string {
				return came(w.Do("GET", "/magic-link/verify?token="+token, nil, harness.Browser), token)
			}
		}},
		"button of a magic link": {opts: []auth.Option{cookieMode}, ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
			edits(w, w.Member(ada).User.ID)
			token := w.MagicLink(ada, nil)
			return func() string {
				return came(w.Do("POST", "/magic-link/verify", "token="+token, harness.Form, harness.Browser), harness.AccessCookie)
			}
		}},
		"button of a magic link that leads on": {opts: []auth.Option{toApp}, ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
			w.Member(ada)
			token := w.MagicLink(ada, map[string]any{"redirect_to": "https://app.test/"})
			return func() string {
				return came(w.Do("POST", "/magic-link/verify", "token="+token, harness.Form, harness.Browser), "?code=")
			}
		}},
		"page of a confirmation": {ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
			w.PostSignUp(ada)
			token := w.LinkToken(ada, auth.KindVerifyEmail)
			return func() string { return came(w.Do("GET", "/verify-email?token="+token, nil, harness.Browser), token) }
		}},
		"button of an invitation": {opts: []auth.Option{cookieMode}, ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
			body := url.Values{"token": {w.Invited(ada)}, "password": {harness.GoodPassword}}.Encode()
			return func() string {
				return came(w.Do("POST", "/invitations/accept", body, harness.Form, harness.Browser), harness.AccessCookie)
			}
		}},
		"sending a confirmation again": {ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
			id := w.PostSignUp(ada).User.ID
			w.Inbox.Clear()
			return func() string {
				came := cameOf(w.StartEmailVerification(w.T.Context(), auth.StartEmailVerificationParams{Caller: auth.ByApplication(id)}))
				if came == isWhole && len(w.Inbox.Messages()) == 0 {
					return "nothing was sent"
				}
				return came
			}
		}},
		"page of a notice": {ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
			w.Account(ada, harness.GoodPassword)
			w.ChangeEmailTo(w.SignInAgain(ada), ada, "thief@example.com")
			token := w.StopToken(ada, auth.KindEmailChanged)
			return func() string { return came(w.Do("GET", "/secure-account?token="+token, nil, harness.Browser), token) }
		}},
		"undoing what a thief did":      {ready: robbedOfMuch},
		"stopping who knows a password": {ready: knownPassword},
		"taking a number back": {ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
			phone, ada := harness.PhoneNumber, w.Member(ada).User.ID
			w.Patch(ada, store.UserPatch{Phone: &phone})
			code, request := w.AskCode(harness.PhoneNumber)
			return func() string {
				a := w.OTPOf(harness.PhoneNumber, code, request)
				if a.Status == 200 && harness.DecodeAs[harness.Session](a).User.ID == ada {
					return "signed in to another's account"
				}
				return came(a, `"access_token":"e`)
			}
		}},
		"confirming a number": {ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
			s := w.Member(ada)
			w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken)).Want(200)
			code := w.Mail(w.T, harness.PhoneNumber, auth.KindPhoneCode).Code
			edits(w, s.User.ID)
			return func() string {
				return came(w.PostOTP(harness.PhoneNumber, code, harness.Bearer(s.AccessToken)), `"access_token":"e`)
			}
		}},
		"linking an identity": {ready: func(w *harness.World, idp *authtest.Provider, _ func()) func() string {
			s, v := w.Member(ada), w.NewVisitor(idp)
			to := v.Link("github", s, nil)
			idp.SignsIn(authtest.Person{Subject: "9", Email: "ada@work.test", EmailVerified: true})
			back := idp.Authorize(w.T, to)
			edits(w, s.User.ID)
			return func() string { return came(v.Back("github", back), `"access_token":"e`) }
		}},
		"enabling a second factor": {ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
			s := w.Member(ada)
			setup := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(s.AccessToken)).Want(200))
			edits(w, s.User.ID)
			return func() string {
				return came(w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(setup.Secret, 0)}, harness.Bearer(s.AccessToken)), `"access_token":"e`)
			}
		}},
		"a refresh": {ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
			s := w.Member(ada)
			edits(w, s.User.ID)
			return func() string { return came(w.PostRefresh(s.RefreshToken), `"access_token":"e`) }
		}},
		"a login to an account that changes": {
			ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
				edits(w, w.Member(ada).User.ID)
				return func() string { return came(w.PostLogin(ada, harness.GoodPassword), `"access_token":"e`) }
			},
			meanwhile: map[string]func(context.Context, *harness.World){"CreateSession": func(ctx context.Context, w *harness.World) {
				u, err := w.Store.User(ctx, store.ByEmail(ada))
				if err != nil {
					w.T.Error(err)
				}
				c := store.Change{Now: w.Clock.Now(), By: auth.Authority{System: "test"}}
				link := &auth.Identity{ID: uuid.NewString(), Provider: "github", Subject: "9", CreatedAt: c.Now, LastSignInAt: c.Now}
				if _, err := w.Store.UpdateUser(ctx, store.UpdateUser{Change: c, UserID: u.ID, Patch: store.UserPatch{Link: link}}); err != nil {
					w.T.Error(err)
				}
			}},
		},
		"a refresh while all is switched off": {opts: []auth.Option{oneSecret}, ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
			s, o := w.Member(ada), beside(w, w.Store, oneSecret, auth.WithSettings(auth.Settings{Enabled: auth.Off}))
			w.Patch(s.User.ID, store.UserPatch{Roles: &[]string{auth.RoleOwner}})
			return func() string { return came(o.PostRefresh(s.RefreshToken), `"access_token":"e`) }
		}},
		"a login while all is switched off": {opts: []auth.Option{oneSecret}, ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
			s, o := w.Member(ada), beside(w, w.Store, oneSecret, auth.WithSettings(auth.Settings{Enabled: auth.Off}))
			w.Patch(s.User.ID, store.UserPatch{Roles: &[]string{auth.RoleOwner}})
			return func() string { return came(o.PostLogin(ada, harness.GoodPassword), `"access_token":"e`) }
		}},
		"acting as somebody": {ready: func(w *harness.World, _ *authtest.Provider, _ func()) func() string {
			to, err := url.Parse(actsAs(w, w.Member("eve@example.com"), w.Member(ada).User.ID))
			if err != nil {
				w.T.Fatal(err)
			}
			return func() string { return came(w.PostExchange(to.Query().Get("code"), ""), `"access_token":"e`) }
		}},
	}
}

// actsAs begins an impersonation of somebody with a role, and returns where it leads.
func actsAs(w *harness.World, actor harness.Session, id string) string {
	w.T.Helper()
	kit, ctx, now := host.Of(w), w.T.Context(), w.Clock.Now()
	edits(w, id)
	i := store.Impersonation{
		ID: kit.NewSessionID(), UserID: id, ActorID: actor.User.ID, ActorSessionID: w.ClaimsOf(actor).SessionID,
		CreatedAt: now, ExpiresAt: now.Add(auth.ImpersonationLife), Reason: "to see",
	}
	st, _ := store.Capability[store.AdminStore](w.Store)
	if err := st.BeginImpersonation(ctx, store.BeginImpersonation{Change: kit.Change(ctx, harness.ByOperator()), Impersonation: i}); err != nil {
		w.T.Fatal(err)
	}
	to, err := kit.ImpersonationURL(ctx, harness.ByOperator(), i.ID, "https://app.test/")
	if err != nil {
		w.T.Fatal(err)
	}
	return to
}

// robbedOfMuch is an account that a thief moved to an address of theirs and gave more ways
// in; the owner's address is another's by now, who never proved it.
func robbedOfMuch(w *harness.World, _ *authtest.Provider, well func()) func() string {
	const ada = "ada@example.com"
	id := w.Account(ada, harness.GoodPassword).ID
	w.Clock.Advance(time.Hour)
	thief := w.SignInAgain(ada)
	w.Clock.Advance(time.Minute)
	w.ChangeEmailTo(thief, ada, "thief@example.com")
	token := w.StopToken(ada, auth.KindEmailChanged)
	w.Do("POST", "/signup", map[string]any{"email": ada, "password": "the attacker's horse"}).Want(200)
	at := w.Clock.Now()
	for _, name := range []string{"google", "github"} {
		w.Patch(id, store.UserPatch{Link: &auth.Identity{ID: uuid.NewString(), Provider: name, Subject: "666", CreatedAt: at, LastSignInAt: at}})
	}
	w.Enrol(thief.AccessToken)
	return func() string {
		came := came(w.Do("POST", "/secure-account", map[string]any{"token": token}), "")
		well()
		u, err := w.Store.User(w.T.Context(), store.ByID(id))
		if came == isWhole && (err != nil || u.Email != ada || u.MFAEnabled || len(u.Identities) > 0 || w.Alive(thief.AccessToken)) {
			return fmt.Sprintf("left: %+v, %v", u, err)
		}
		return came
	}
}

// knownPassword is an account in which a thief, by a session of the mailbox, asked for
// another address, and signed in with the password since.
func knownPassword(w *harness.World, _ *authtest.Provider, well func()) func() string {
	const ada = "ada@example.com"
	w.Account(ada, harness.GoodPassword)
	w.Clock.Advance(time.Hour)
	thief := w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink(ada, nil)}).Session()
	w.Clock.Advance(time.Minute)
	w.SignInAgain(ada)
	w.Do("PATCH", "/me", map[string]any{"email": "thief@example.com"}, harness.Bearer(thief.AccessToken)).Want(200)
	token := w.StopToken(ada, auth.KindEmailChangeRequested)
	return func() string {
		came := came(w.Do("POST", "/secure-account", map[string]any{"token": token}), "")
		well()
		if came == isWhole && w.PostLogin(ada, harness.GoodPassword).Status == 200 {
			return "the password that is known is good still"
		}
		return came
	}
}
