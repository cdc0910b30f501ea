package mail_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// noticeExempt are the events without a notice to the owner, with the reason.
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

		auth.EventImpersonationBegun:  "opens no way in; admin.Options.NotifyImpersonated has it told",
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

// Every kind of event has a notice, or a reason to have none.
func TestEveryEventHasANotice(t *testing.T) {
	types, exempt := harness.EventTypes(t), noticeExempt()
	if len(types) < 20 {
		t.Fatalf("found %v", types)
	}
	for _, e := range types {
		k, told := harness.NoticeOf(e)
		if why := exempt[e]; told == (why != "") {
			t.Errorf("%s has the notice %q and the excuse %q, want one of both", e, k, why)
		}
		delete(exempt, e)
	}
	for e := range exempt {
		t.Errorf("%s is exempt, and no event", e)
	}
}

// door is one way to change a credential.
type door struct {
	event  auth.EventType
	notice auth.Kind
	// prepare sets it up; open makes the change, with a context of its own.
	prepare func(w *harness.World, idp *authtest.Provider) (open func(context.Context) error)
}

func noticeDoors() map[string]door {
	return map[string]door{
		"password changed": {auth.EventPasswordChanged, auth.KindPasswordChanged, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			by := w.ClaimsOf(w.Member(harness.AdaMail)).Caller()
			return func(ctx context.Context) error {
				return w.ChangePassword(ctx, auth.ChangePasswordParams{Caller: by, Current: harness.GoodPassword, New: "another horse battery"})
			}
		}},
		"password reset": {auth.EventPasswordReset, auth.KindPasswordChanged, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			w.Member(harness.AdaMail)
			w.Do("POST", "/forgot-password", map[string]any{"email": harness.AdaMail}).Want(200)
			token := w.LinkToken(harness.AdaMail, auth.KindResetPassword)
			return func(ctx context.Context) error {
				return w.ResetPassword(ctx, auth.ResetPasswordParams{Token: token, NewPassword: "another horse battery"})
			}
		}},
		"phone confirmed": {auth.EventPhoneVerified, auth.KindPhoneChanged, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			s := w.Member(harness.AdaMail)
			w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken)).Want(200)
			code := w.Mail(w.T, harness.PhoneNumber, auth.KindPhoneCode).Code
			return func(ctx context.Context) error {
				_, err := w.ConfirmPhone(ctx, auth.ConfirmPhoneParams{Caller: w.ClaimsOf(s).Caller(), Phone: harness.PhoneNumber, Code: code})
				return err
			}
		}},
		"factor enabled": {auth.EventMFAEnabled, auth.KindMFAEnabled, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			s := w.Member(harness.AdaMail)
			secret := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(s.AccessToken)).Want(200)).Secret
			return func(ctx context.Context) error {
				_, err := w.EnableTOTP(ctx, auth.EnableTOTPParams{Caller: w.ClaimsOf(s).Caller(), TOTPCode: w.Code(secret, 0)})
				return err
			}
		}},
		"factor disabled": {auth.EventMFADisabled, auth.KindMFADisabled, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			by := w.ClaimsOf(w.Enrol(w.Member(harness.AdaMail).AccessToken).Session).Caller()
			return func(ctx context.Context) error { return w.DisableTOTP(ctx, auth.DisableTOTPParams{Caller: by}) }
		}},
		"app removed": {auth.EventTOTPRemoved, auth.KindTOTPRemoved, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			s := w.Enrol(w.Member(harness.AdaMail).AccessToken).Session
			body := harness.Registration(w.T, w.Do, harness.NewKey(), true, harness.Bearer(s.AccessToken))
			by := w.ClaimsOf(w.Do("POST", "/me/passkeys", body, harness.Bearer(s.AccessToken)).Session()).Caller()
			return func(ctx context.Context) error { return w.DisableTOTP(ctx, auth.DisableTOTPParams{Caller: by}) }
		}},
		"passkey added": {auth.EventPasskeyAdded, auth.KindPasskeyAdded, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			s := w.Member(harness.AdaMail)
			body := harness.Registration(w.T, w.Do, harness.NewKey(), false, harness.Bearer(s.AccessToken))
			return func(ctx context.Context) error {
				_, err := w.AddPasskey(ctx, auth.AddPasskeyParams{Caller: w.ClaimsOf(s).Caller(), Credential: body["credential"].(json.RawMessage)})
				return err
			}
		}},
		"passkey removed": {auth.EventPasskeyRemoved, auth.KindPasskeyRemoved, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			s := w.Member(harness.AdaMail)
			w.AddsPasskey(s.AccessToken, false)
			list, err := w.ListPasskeys(w.T.Context(), w.ClaimsOf(s).Caller())
			if err != nil {
				w.T.Fatal(err)
			}
			return func(ctx context.Context) error {
				return w.RemovePasskey(ctx, auth.RemovePasskeyParams{Caller: w.ClaimsOf(s).Caller(), ID: list.Passkeys[0].ID})
			}
		}},
		"passkey copied": {auth.EventPasskeyCounterNotIncreased, auth.KindPasskeyCopied, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			s := w.Member(harness.AdaMail)
			key := w.AddsPasskey(s.AccessToken, false)
			key.Passkeys[0].Counter = 7
			w.Do("POST", "/passkeys/sign-in/finish", harness.PasskeySignIn(w.T, w.Do, key)).Want(200)
			key.Passkeys[0].Counter = 6
			body := harness.PasskeySignIn(w.T, w.Do, key)
			return func(ctx context.Context) error {
				_, err := w.FinishPasskeySignIn(ctx, auth.FinishPasskeySignInParams{RequestID: body["request_id"].(string), Credential: body["credential"].(json.RawMessage)})
				return err
			}
		}},
		"recovery codes replaced": {auth.EventRecoveryCodesReplaced, auth.KindRecoveryCodesReplaced, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			by := w.ClaimsOf(w.Enrol(w.Member(harness.AdaMail).AccessToken).Session).Caller()
			return func(ctx context.Context) error {
				_, err := w.NewRecoveryCodes(ctx, auth.NewRecoveryCodesParams{Caller: by})
				return err
			}
		}},
		"recovery code used": {auth.EventRecoveryCodeUsed, auth.KindRecoveryCodeUsed, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			e := w.Enrol(w.Member(harness.AdaMail).AccessToken)
			by := w.ClaimsOf(e.Session).Caller()
			return func(ctx context.Context) error {
				_, err := w.StepUp(ctx, auth.StepUpParams{Caller: by, RecoveryCode: e.Recovery[0]})
				return err
			}
		}},
		"address changed": {auth.EventEmailChanged, auth.KindEmailChanged, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			s := w.Member(harness.AdaMail)
			w.Do("PATCH", "/me", map[string]any{"email": "new@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
			token, by := w.LinkToken("new@example.com", auth.KindChangeEmail), w.ClaimsOf(s).Caller()
			return func(ctx context.Context) error {
				_, err := w.VerifyEmail(ctx, auth.VerifyEmailParams{Token: token, Within: by})
				return err
			}
		}},
		"taken over": {auth.EventTakenOver, auth.KindTakenOver, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			w.PostSignUp(harness.AdaMail)
			w.Do("POST", "/magic-link/send", map[string]any{"email": harness.AdaMail}).Want(200)
			token := w.LinkToken(harness.AdaMail, auth.KindMagicLink)
			return func(ctx context.Context) error {
				_, err := w.VerifyMagicLink(ctx, auth.VerifyMagicLinkParams{Token: token})
				return err
			}
		}},
		"identity joined": {auth.EventIdentityLinked, auth.KindIdentityLinked, func(w *harness.World, idp *authtest.Provider) func(context.Context) error {
			w.Member(harness.AdaMail)
			return func(ctx context.Context) error {
				_, err := w.SignInWithIDToken(ctx, auth.IDTokenParams{Provider: "google", IDToken: idp.IDToken("google", hers, "")})
				return err
			}
		}},
		"identity linked": {auth.EventIdentityLinked, auth.KindIdentityLinked, func(w *harness.World, idp *authtest.Provider) func(context.Context) error {
			by := w.ClaimsOf(w.Member(harness.AdaMail)).Caller()
			to, err := w.LinkIdentity(w.T.Context(), auth.LinkIdentityParams{Caller: by, StartOAuthParams: auth.StartOAuthParams{Provider: "google", Browser: "hers"}})
			if err != nil {
				w.T.Fatal(err)
			}
			idp.SignsIn(authtest.Person{Subject: "2", Email: "elsewhere@example.com", EmailVerified: true})
			back := idp.Authorize(w.T, to)
			return func(ctx context.Context) error {
				_, err := w.FinishOAuth(ctx, auth.OAuthCallback{Provider: "google", State: back.Get("state"), Code: back.Get("code"), Browser: "hers"})
				return err
			}
		}},
		"new device": {auth.EventNewDevice, auth.KindNewDevice, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			w.Member(harness.AdaMail)
			return func(ctx context.Context) error {
				_, err := w.Login(auth.ContextWithClient(ctx, auth.Client{Device: "another"}), auth.LoginParams{Email: harness.AdaMail, Password: harness.GoodPassword})
				return err
			}
		}},
		"account deleted": {auth.EventUserDeleted, auth.KindAccountDeleted, func(w *harness.World, _ *authtest.Provider) func(context.Context) error {
			by := w.ClaimsOf(w.Member(harness.AdaMail)).Caller()
			return func(ctx context.Context) error { return w.DeleteUser(ctx, auth.DeleteUserParams{Caller: by}) }
		}},
		"identity unlinked": {auth.EventIdentityUnlinked, auth.KindIdentityUnlinked, func(w *harness.World, idp *authtest.Provider) func(context.Context) error {
			s := w.Member(harness.AdaMail)
			w.SignInWith(w.T, idp, "google", hers)
			return func(ctx context.Context) error {
				return w.UnlinkIdentity(ctx, auth.UnlinkIdentityParams{Caller: w.ClaimsOf(s).Caller(), Provider: "google"})
			}
		}},
	}
}

var hers = authtest.Person{Subject: "1", Email: harness.AdaMail, EmailVerified: true}

// Each change of a credential leaves its event and its notice to the account's previous
// email address, even if the caller disconnects as soon as the store has answered. Each
// notice has a case here.
func TestDoorsLeaveNotices(t *testing.T) {
	doors := noticeDoors()
	for _, e := range harness.EventTypes(t) {
		has := e == auth.EventPhoneChanged || e == auth.EventUserUnlocked // only operators do that: admin's TestUpdateUser, TestUnlockLetsTenAttemptsThrough
		for _, d := range doors {
			has = has || d.event == e
		}
		if _, told := harness.NoticeOf(e); told && !has {
			t.Errorf("no door leads to %s", e)
		}
	}
	for name, d := range doors {
		for _, gone := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", then gone"}[gone], func(t *testing.T) {
				t.Parallel()
				tap := storetap.New(harness.NewStore(t))
				idp := authtest.StartProvider(t)
				w := &harness.World{T: t, Log: &harness.SyncBuffer{}}
				w.Env = authtest.NewOn(t, tap, harness.WithPasskeys(), auth.WithProvider(idp.Google()), auth.WithHooks(auth.Hooks{OnEvent: w.Record}), auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
				idp.Now = w.Clock.Now
				open := d.prepare(w, idp)
				w.Fired()
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
				w.Mail(t, harness.AdaMail, d.notice)
				if !slices.Contains(w.Fired(), d.event) {
					t.Errorf("the hooks were not told of %s", d.event)
				}
				events, _ := store.Capability[store.Journal](w.Store)
				list, err := events.Events(t.Context(), store.EventQuery{})
				if err != nil || !slices.ContainsFunc(list, func(e auth.Event) bool { return e.Type == d.event }) {
					t.Errorf("%s is not recorded: %v", d.event, err)
				}
			})
		}
	}
}

// A mail contains the account's name only if the email address is verified, because anybody
// may sign up with a stranger's address under any name.
func TestStrangersNamesAreLeftOut(t *testing.T) {
	const message = "your account is locked call us now"
	w := harness.NewWorld(t)
	s := w.Do("POST", "/signup", map[string]any{"email": harness.AdaMail, "password": harness.GoodPassword, "full_name": message}).Session()
	w.Do("POST", "/magic-link/send", map[string]any{"email": harness.AdaMail}).Want(200)
	w.Do("POST", "/forgot-password", map[string]any{"email": harness.AdaMail}).Want(200)
	w.Do("POST", "/me/password", map[string]any{"current_password": harness.GoodPassword, "new_password": "another horse battery"}, harness.Bearer(s.AccessToken)).Want(200)
	w.Do("PATCH", "/me", map[string]any{"email": "eve@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
	kinds := []auth.Kind{auth.KindVerifyEmail, auth.KindMagicLink, auth.KindResetPassword, auth.KindPasswordChanged}
	for _, k := range kinds {
		w.Mail(t, harness.AdaMail, k)
	}
	w.Mail(t, "eve@example.com", auth.KindChangeEmail)
	for _, m := range w.Inbox.Messages() {
		if harness.ContainsAny(m.Subject+m.Text+m.HTML, message, "locked") {
			t.Errorf("%s to %s: %s", m.Kind, m.To, m.Text)
		}
	}
	proved := w.Member("grace@example.com")
	w.Do("PATCH", "/me", map[string]any{"full_name": "Grace", "email": "hopper@example.com"}, harness.Bearer(proved.AccessToken)).Want(200)
	if m := w.Mail(t, "hopper@example.com", auth.KindChangeEmail); harness.ContainsAny(m.Text, "Grace") {
		t.Errorf("to a new address: %s", m.Text)
	}
	w.Do("POST", "/forgot-password", map[string]any{"email": "grace@example.com"}).Want(200)
	if m := w.Mail(t, "grace@example.com", auth.KindResetPassword); !harness.ContainsAny(m.Text, "Hello Grace") {
		t.Errorf("to one that is proved: %s", m.Text)
	}
}
