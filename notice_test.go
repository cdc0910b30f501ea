package auth_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// noticeExempt are the events that no owner is told of by mail, and why.
func noticeExempt() map[auth.EventType]string {
	return map[auth.EventType]string{
		auth.EventSignedUp:          "there was no owner before; the address gets a link",
		auth.EventSignedIn:          "is no change of a way in",
		auth.EventSignInFailed:      "changes nothing",
		auth.EventRefreshed:         "is no change of a way in",
		auth.EventReused:            "a session ends; most often by a program's mistake",
		auth.EventReplayed:          "is most often an answer that was lost",
		auth.EventSessionsEnded:     "sessions end at their user's word",
		auth.EventEmailVerified:     "whoever reads the mailbox did it, by what was sent there",
		auth.EventUserUpdated:       "a profile is no way in",
		auth.EventUserImported:      "there was no owner before",
		auth.EventSessionConfirmed:  "a proof within a session opens no way in",
		auth.EventAccountSecured:    "its reader did it; a change of address besides has a notice of its own",
		auth.EventMessageFailed:     "is about a message",
		auth.EventSMSBudgetExceeded: "is about no account",
		auth.EventUserCreated:       "there was no owner before",
		auth.EventUserUnlocked:      "opens no way in that was not there",
		auth.EventUserBanned:        "whoever is shut out learns of it at the next sign-in; the reason is the operator's",
		auth.EventUserUnbanned:      "opens no way in that was not there",
		auth.EventRolesChanged:      "is no way in; the audit log tells who gave what",
		auth.EventRoleChanged:       "is about no account",
		auth.EventRoleDeleted:       "is about no account",
		auth.EventSettingsChanged:   "is about no account",
		auth.EventSettingsTested:    "is about no account",
		auth.EventKeyCreated:        "is no way in to an account; the audit log tells who made it",
		auth.EventKeyChanged:        "likewise",
		auth.EventKeyRotated:        "likewise",
		auth.EventKeyRevoked:        "likewise",
		auth.EventAdminDenied:       "nothing happened",
		auth.EventAuditExported:     "is about no account",
		auth.EventJobStarted:        "is about no account; what it does has notices of its own",

		auth.EventImpersonationBegun:  "opens no way in; admin.Options.TellImpersonated has it told",
		auth.EventImpersonationEnded:  "opens no way in",
		auth.EventLinkMade:            "opens nothing until it is used, and that has the notices of the flow",
		auth.EventMessageAsked:        "the message itself tells",
		auth.EventUserAnonymized:      "there is nobody any more who could be told",
		auth.EventUserExported:        "changes nothing; the audit log tells who did it",
		auth.EventUsersExported:       "is about no account",
		auth.EventInvited:             "is about no account",
		auth.EventInvitationWithdrawn: "is about no account",
		auth.EventInvitationAccepted:  "whoever reads the mailbox did it; an account that is taken over has a notice of its own",
	}
}

// eventTypes are the constants of event.go.
func eventTypes(t *testing.T) (list []auth.EventType) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "EventType" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, auth.EventType(value))
		return true
	})
	return list
}

// Every kind of event has a notice, or a reason to have none.
func TestEveryEventHasANotice(t *testing.T) {
	types, exempt := eventTypes(t), noticeExempt()
	if len(types) < 20 {
		t.Fatalf("found %v", types)
	}
	for _, e := range types {
		k, told := auth.NoticeOf(e)
		if why := exempt[e]; told == (why != "") {
			t.Errorf("%s has the notice %q and the excuse %q, want one of both", e, k, why)
		}
		delete(exempt, e)
	}
	for e := range exempt {
		t.Errorf("%s is exempt, and no event", e)
	}
}

// A change whose event calls for a notice, and which does not say whose account it
// is, is taken by no store.
func TestNoticesCannotBeForgotten(t *testing.T) {
	for _, e := range eventTypes(t) {
		_, told := auth.NoticeOf(e)
		u := auth.User{ID: "01a1fb4c-2b13-7a71-806e-d67843451400", Email: "ada@example.com", EmailVerifiedAt: time.Now()}
		env := newEnv(t)
		forgotten, whole := auth.NewChange(env.Auth, auth.User{}, e), auth.NewChange(env.Auth, u, e)
		if err := forgotten.Check(); (err != nil) != told {
			t.Errorf("%s of nobody: %v", e, err)
		}
		if err := whole.Check(); err != nil || (len(whole.Messages) == 1) != told {
			t.Errorf("%s: %d messages, %v", e, len(whole.Messages), err)
		}
		u.Email = ""
		if c := auth.NewChange(env.Auth, u, e); c.Check() != nil || len(c.Messages) != 0 {
			t.Errorf("%s without an address: %d messages", e, len(c.Messages))
		}
	}
}

// door is one way to change a way in.
type door struct {
	event  auth.EventType
	notice auth.Kind
	// prepare leads to it; open goes through, with a context of the door's own.
	prepare func(w *world, idp *authtest.Provider) (open func(context.Context) error)
}

const adas = "ada@example.com"

func noticeDoors() map[string]door {
	return map[string]door{
		"password changed": {auth.EventPasswordChanged, auth.KindPasswordChanged, func(w *world, _ *authtest.Provider) func(context.Context) error {
			by := w.claimsOf(w.member(adas)).Caller()
			return func(ctx context.Context) error {
				return w.ChangePassword(ctx, auth.ChangePasswordParams{Caller: by, Current: goodPassword, New: "another horse battery"})
			}
		}},
		"password reset": {auth.EventPasswordReset, auth.KindPasswordChanged, func(w *world, _ *authtest.Provider) func(context.Context) error {
			w.member(adas)
			w.do("POST", "/forgot-password", map[string]any{"email": adas}).want(200)
			token := w.linkToken(adas, auth.KindResetPassword)
			return func(ctx context.Context) error {
				return w.ResetPassword(ctx, auth.ResetPasswordParams{Token: token, NewPassword: "another horse battery"})
			}
		}},
		"phone confirmed": {auth.EventPhoneVerified, auth.KindPhoneChanged, func(w *world, _ *authtest.Provider) func(context.Context) error {
			s := w.member(adas)
			w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(s.AccessToken)).want(200)
			code := w.Mail(w.t, number, auth.KindPhoneCode).Code
			return func(ctx context.Context) error {
				_, err := w.ConfirmPhone(ctx, auth.ConfirmPhoneParams{Caller: w.claimsOf(s).Caller(), Phone: number, Code: code})
				return err
			}
		}},
		"factor enabled": {auth.EventMFAEnabled, auth.KindMFAEnabled, func(w *world, _ *authtest.Provider) func(context.Context) error {
			s := w.member(adas)
			secret := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(s.AccessToken)).want(200)).Secret
			return func(ctx context.Context) error {
				_, err := w.EnableTOTP(ctx, auth.EnableTOTPParams{Caller: w.claimsOf(s).Caller(), TOTPCode: w.code(secret, 0)})
				return err
			}
		}},
		"factor disabled": {auth.EventMFADisabled, auth.KindMFADisabled, func(w *world, _ *authtest.Provider) func(context.Context) error {
			by := w.claimsOf(w.enrol(w.member(adas).AccessToken).session).Caller()
			return func(ctx context.Context) error { return w.DisableTOTP(ctx, auth.DisableTOTPParams{Caller: by}) }
		}},
		"recovery codes replaced": {auth.EventRecoveryCodesReplaced, auth.KindRecoveryCodesReplaced, func(w *world, _ *authtest.Provider) func(context.Context) error {
			by := w.claimsOf(w.enrol(w.member(adas).AccessToken).session).Caller()
			return func(ctx context.Context) error {
				_, err := w.NewRecoveryCodes(ctx, auth.NewRecoveryCodesParams{Caller: by})
				return err
			}
		}},
		"recovery code used": {auth.EventRecoveryCodeUsed, auth.KindRecoveryCodeUsed, func(w *world, _ *authtest.Provider) func(context.Context) error {
			e := w.enrol(w.member(adas).AccessToken)
			by := w.claimsOf(e.session).Caller()
			return func(ctx context.Context) error {
				_, err := w.StepUp(ctx, auth.StepUpParams{Caller: by, RecoveryCode: e.recovery[0]})
				return err
			}
		}},
		"address changed": {auth.EventEmailChanged, auth.KindEmailChanged, func(w *world, _ *authtest.Provider) func(context.Context) error {
			s := w.member(adas)
			w.do("PATCH", "/me", map[string]any{"email": "new@example.com"}, bearer(s.AccessToken)).want(200)
			token := w.linkToken("new@example.com", auth.KindChangeEmail)
			return func(ctx context.Context) error {
				_, err := w.VerifyEmail(ctx, auth.VerifyEmailParams{Token: token})
				return err
			}
		}},
		"taken over": {auth.EventTakenOver, auth.KindTakenOver, func(w *world, _ *authtest.Provider) func(context.Context) error {
			w.signUp(adas)
			w.do("POST", "/magic-link/send", map[string]any{"email": adas}).want(200)
			token := w.linkToken(adas, auth.KindMagicLink)
			return func(ctx context.Context) error {
				_, err := w.VerifyMagicLink(ctx, auth.VerifyMagicLinkParams{Token: token})
				return err
			}
		}},
		"identity joined": {auth.EventIdentityLinked, auth.KindIdentityLinked, func(w *world, idp *authtest.Provider) func(context.Context) error {
			w.member(adas)
			return func(ctx context.Context) error {
				_, err := w.SignInWithIDToken(ctx, auth.IDTokenParams{Provider: "google", IDToken: idp.IDToken("google", hers, "")})
				return err
			}
		}},
		"identity linked": {auth.EventIdentityLinked, auth.KindIdentityLinked, func(w *world, idp *authtest.Provider) func(context.Context) error {
			by := w.claimsOf(w.member(adas)).Caller()
			to, err := w.LinkIdentity(w.t.Context(), auth.LinkIdentityParams{Caller: by, StartOAuthParams: auth.StartOAuthParams{Provider: "google", Browser: "hers"}})
			if err != nil {
				w.t.Fatal(err)
			}
			idp.SignsIn(authtest.Person{Subject: "2", Email: "elsewhere@example.com", EmailVerified: true})
			back := idp.Authorize(w.t, to)
			return func(ctx context.Context) error {
				_, err := w.FinishOAuth(ctx, auth.OAuthCallback{Provider: "google", State: back.Get("state"), Code: back.Get("code"), Browser: "hers"})
				return err
			}
		}},
		"new device": {auth.EventNewDevice, auth.KindNewDevice, func(w *world, _ *authtest.Provider) func(context.Context) error {
			w.member(adas)
			return func(ctx context.Context) error {
				_, err := w.Login(auth.ContextWithClient(ctx, auth.Client{Device: "another"}), auth.LoginParams{Email: adas, Password: goodPassword})
				return err
			}
		}},
		"account deleted": {auth.EventUserDeleted, auth.KindAccountDeleted, func(w *world, _ *authtest.Provider) func(context.Context) error {
			by := w.claimsOf(w.member(adas)).Caller()
			return func(ctx context.Context) error { return w.DeleteUser(ctx, auth.DeleteUserParams{Caller: by}) }
		}},
		"identity unlinked": {auth.EventIdentityUnlinked, auth.KindIdentityUnlinked, func(w *world, idp *authtest.Provider) func(context.Context) error {
			s := w.member(adas)
			w.SignInWith(w.t, idp, "google", hers)
			return func(ctx context.Context) error {
				return w.UnlinkIdentity(ctx, auth.UnlinkIdentityParams{Caller: w.claimsOf(s).Caller(), Provider: "google"})
			}
		}},
	}
}

var hers = authtest.Person{Subject: "1", Email: adas, EmailVerified: true}

// Whatever changes a way in leaves its event and its notice, at the address that
// the account had before; also if the one who asked is gone as soon as the store
// has answered. There is a door for each notice.
func TestDoorsLeaveNotices(t *testing.T) {
	doors := noticeDoors()
	for _, e := range eventTypes(t) {
		has := e == auth.EventPhoneChanged // only operators do that: admin's TestUpdateUser
		for _, d := range doors {
			has = has || d.event == e
		}
		if _, told := auth.NoticeOf(e); told && !has {
			t.Errorf("no door leads to %s", e)
		}
	}
	for name, d := range doors {
		for _, gone := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", then gone"}[gone], func(t *testing.T) {
				t.Parallel()
				tap := storetap.New(newStore(t))
				idp := authtest.StartProvider(t)
				w := &world{t: t, log: &syncBuffer{}}
				w.Env = authtest.NewOn(t, tap, auth.WithProvider(idp.Google()), auth.WithHooks(auth.Hooks{OnEvent: w.record}), auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
				idp.Now = w.Clock.Now
				open := d.prepare(w, idp)
				w.fired()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var changing *store.Change
				tap.Reset(storetap.Hooks{
					Before: func(context.Context, string, int) { changing = nil },
					Edit:   func(_ string, c *store.Change) { changing = c },
					After: func(_ context.Context, _ string, _ int, err error) {
						if gone && err == nil && changing != nil && slices.ContainsFunc(changing.Events, func(e store.OutcomeEvent) bool { return e.Event.Type == d.event }) {
							cancel()
						}
					},
				})
				if err := open(ctx); err != nil && !gone {
					t.Fatal(err)
				}
				tap.Reset(storetap.Hooks{})
				w.Mail(t, adas, d.notice)
				if !slices.Contains(w.fired(), d.event) {
					t.Errorf("the hooks were not told of %s", d.event)
				}
				events, _ := store.Capability[store.EventStore](w.Store)
				list, err := events.Events(t.Context(), store.EventQuery{})
				if err != nil || !slices.ContainsFunc(list, func(e auth.Event) bool { return e.Type == d.event }) {
					t.Errorf("%s is not recorded: %v", d.event, err)
				}
			})
		}
	}
}

// A name is told only to those who have proved the address it belongs to: anybody
// may sign up with a stranger's, under any name.
func TestStrangersNamesAreLeftOut(t *testing.T) {
	const message = "your account is locked call us now"
	w := newWorld(t)
	s := w.do("POST", "/signup", map[string]any{"email": adas, "password": goodPassword, "full_name": message}).session()
	w.do("POST", "/magic-link/send", map[string]any{"email": adas}).want(200)
	w.do("POST", "/forgot-password", map[string]any{"email": adas}).want(200)
	w.do("POST", "/me/password", map[string]any{"current_password": goodPassword, "new_password": "another horse battery"}, bearer(s.AccessToken)).want(200)
	w.do("PATCH", "/me", map[string]any{"email": "eve@example.com"}, bearer(s.AccessToken)).want(200)
	kinds := []auth.Kind{auth.KindVerifyEmail, auth.KindMagicLink, auth.KindResetPassword, auth.KindPasswordChanged}
	for _, k := range kinds {
		w.Mail(t, adas, k)
	}
	w.Mail(t, "eve@example.com", auth.KindChangeEmail)
	for _, m := range w.Inbox.Messages() {
		if containsAny(m.Subject+m.Text+m.HTML, message, "locked") {
			t.Errorf("%s to %s: %s", m.Kind, m.To, m.Text)
		}
	}
	proved := w.member("grace@example.com")
	w.do("PATCH", "/me", map[string]any{"full_name": "Grace", "email": "hopper@example.com"}, bearer(proved.AccessToken)).want(200)
	if m := w.Mail(t, "hopper@example.com", auth.KindChangeEmail); containsAny(m.Text, "Grace") {
		t.Errorf("to a new address: %s", m.Text)
	}
	w.do("POST", "/forgot-password", map[string]any{"email": "grace@example.com"}).want(200)
	if m := w.Mail(t, "grace@example.com", auth.KindResetPassword); !containsAny(m.Text, "Hello Grace") {
		t.Errorf("to one that is proved: %s", m.Text)
	}
}
