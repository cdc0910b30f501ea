package authclient

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// sent is a server that refuses everything, and remembers the last request.
type sent struct{ request string }

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	s.request = strings.TrimSpace(r.Method + " " + strings.TrimPrefix(r.URL.RequestURI(), "/auth/v1") + " " + string(body))
	for _, name := range []string{"X-Captcha-Token", "Authorization", "If-Match", "Apikey", "X-Device-Id"} {
		if v := r.Header.Get(name); v != "" {
			s.request += " " + name + "=" + v
		}
	}
	s.request = regexp.MustCompile(`(code_challenge|verifier)("?[:=]"?)[\w-]{43}`).ReplaceAllString(s.request, "$1$2…")
	return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"code":"validation_failed"}`)), Request: r}, nil
}

// Every parameter of a caller is sent, and nothing is added.
func TestEveryParameterIsSent(t *testing.T) {
	t.Parallel()
	s := &sent{}
	store := &MemoryStore{}
	if err := store.Save(t.Context(), &Session{AccessToken: "t", RefreshToken: "r", ExpiresAt: time.Now().Add(time.Hour), User: User{ID: "1"}}); err != nil {
		t.Fatal(err)
	}
	c, err := NewClient("https://app.example.com", WithHTTPClient(&http.Client{Transport: s}), WithTokenStore(store))
	if err != nil {
		t.Fatal(err)
	}
	oauth := OAuthParams{Provider: "own", RedirectTo: "/x", Scopes: []string{"a", "b"}, LoginHint: "ada", Prompt: "login", Invitation: "i", ConfirmationCode: "1"}
	for want, call := range map[string]func(context.Context) error{
		`POST /signup {"email":"e","phone":"p","password":"w","full_name":"n","user_metadata":{"a":1},"redirect_to":"/x"} X-Captcha-Token=c`: func(ctx context.Context) error {
			_, err := c.SignUp(ctx, SignUpParams{Email: "e", Phone: "p", Password: "w", FullName: "n", UserMetadata: map[string]any{"a": 1}, RedirectTo: "/x", CaptchaToken: "c"})
			return err
		},
		`POST /login {"email":"e","phone":"p","password":"w","totp_code":"1","trust_device":true} X-Captcha-Token=c`: func(ctx context.Context) error {
			_, err := c.SignInWithPassword(ctx, PasswordParams{Email: "e", Phone: "p", Password: "w", TOTPCode: "1", TrustDevice: true, CaptchaToken: "c"})
			return err
		},
		`POST /magic-link/send {"code_challenge":"…","code_challenge_method":"S256","create_user":false,"email":"e","redirect_to":"/x"} X-Captcha-Token=c`: func(ctx context.Context) error {
			_, err := c.SendOTP(ctx, OTPParams{Email: "e", RedirectTo: "/x", NoSignUp: true, CaptchaToken: "c"})
			return err
		},
		`POST /magic-link/send {"code_challenge":"…","code_challenge_method":"S256","email":"e"}`: func(ctx context.Context) error {
			_, err := c.SendOTP(ctx, OTPParams{Email: "e"})
			return err
		},
		`POST /otp/send {"phone":"p"}`: func(ctx context.Context) error {
			_, err := c.SendOTP(ctx, OTPParams{Phone: "p", RedirectTo: "/x"})
			return err
		},
		`POST /otp/verify {"otp":"1","phone":"p","request_id":"r","totp_code":"2","trust_device":true}`: func(ctx context.Context) error {
			_, err := c.VerifyOTP(ctx, VerifyOTPParams{Phone: "p", Code: "1", RequestID: "r", TOTPCode: "2", TrustDevice: true})
			return err
		},
		`POST /magic-link/verify {"code":"1","code_verifier":"v","email":"e","request_id":"r"}`: func(ctx context.Context) error {
			_, err := c.VerifyOTP(ctx, VerifyOTPParams{Email: "e", Code: "1", RequestID: "r", CodeVerifier: "v"})
			return err
		},
		`POST /magic-link/verify {"token":"k"}`: func(ctx context.Context) error {
			_, err := c.VerifyMagicLink(ctx, "k")
			return err
		},
		`POST /exchange {"code":"k","code_verifier":"v"}`: func(ctx context.Context) error {
			_, err := c.Exchange(ctx, "k", "v")
			return err
		},
		`POST /oauth/own/id-token {"id_token":"i","nonce":"n","access_token":"a"}`: func(ctx context.Context) error {
			_, err := c.SignInWithIDToken(ctx, IDTokenParams{Provider: "own", IDToken: "i", Nonce: "n", AccessToken: "a"})
			return err
		},
		`GET /invitations/accept?token=k`: func(ctx context.Context) error {
			_, err := c.Invitation(ctx, "k")
			return err
		},
		`POST /invitations/accept {"token":"k","password":"w","full_name":"n"}`: func(ctx context.Context) error {
			_, err := c.AcceptInvitation(ctx, AcceptInvitationParams{Token: "k", Password: "w", FullName: "n"})
			return err
		},
		`GET /oauth/own?code_challenge=…&code_challenge_method=S256&confirmation_code=1&invitation=i&login_hint=ada&prompt=login&redirect_to=%2Fx&scopes=a+b`: func(ctx context.Context) error {
			_, err := c.SignInWithOAuth(ctx, oauth)
			return err
		},
		`POST /me/identities/own {"code_challenge":"…","code_challenge_method":"S256","prompt":"login","redirect_to":"/x","scopes":["a","b"]} Authorization=Bearer t`: func(ctx context.Context) error {
			_, err := c.LinkIdentity(ctx, oauth)
			return err
		},
		`POST /me/identities/own {"code_challenge":"…","code_challenge_method":"S256","redirect_to":"/x"} Authorization=Bearer t`: func(ctx context.Context) error {
			_, err := c.LinkIdentity(ctx, OAuthParams{Provider: "own", RedirectTo: "/x"})
			return err
		},
		`POST /2fa/verify {"recovery_code":"2","totp_code":"1","trust_device":true} Authorization=Bearer t`: func(ctx context.Context) error {
			_, err := c.VerifyMFA(ctx, MFAParams{TOTPCode: "1", RecoveryCode: "2", TrustDevice: true})
			return err
		},
		`POST /2fa/verify {"passkey":{"id":"k"}} Authorization=Bearer t`: func(ctx context.Context) error {
			_, err := c.VerifyMFA(ctx, MFAParams{Passkey: json.RawMessage(`{"id":"k"}`)})
			return err
		},
		`POST /2fa/passkey Authorization=Bearer t`: func(ctx context.Context) error {
			_, err := c.BeginPasskeyFactor(ctx)
			return err
		},
		`PATCH /me/passkeys/k%2F1 {"name":"n","second_factor":false} Authorization=Bearer t`: func(ctx context.Context) error {
			_, _, err := c.UpdatePasskey(ctx, "k/1", UpdatePasskeyParams{Name: "n", SecondFactor: new(bool)})
			return err
		},
		`DELETE /me/passkeys/k%2F1 Authorization=Bearer t`: func(ctx context.Context) error { return c.RemovePasskey(ctx, "k/1") },
		`POST /2fa/disable {"totp_code":"1","recovery_code":"2"} Authorization=Bearer t`: func(ctx context.Context) error {
			return c.DisableTOTP(ctx, MFAParams{TOTPCode: "1", RecoveryCode: "2", Passkey: json.RawMessage(`{}`), TrustDevice: true})
		},
		`PATCH /me {"full_name":"","email":"e","phone":"p","user_metadata":{"a":null}} Authorization=Bearer t`: func(ctx context.Context) error {
			_, err := c.UpdateUser(ctx, UpdateUserParams{FullName: new(string), Email: "e", Phone: "p", UserMetadata: map[string]any{"a": nil}})
			return err
		},
		`POST /otp/verify {"otp":"1","phone":"p"} Authorization=Bearer t`: func(ctx context.Context) error {
			_, err := c.ConfirmPhone(ctx, "p", "1")
			return err
		},
		`POST /verify-email {"code":"1","email":"e","password":"w","request_id":"r","token":"k"} Authorization=Bearer t`: func(ctx context.Context) error {
			_, err := c.ConfirmEmail(ctx, ConfirmEmailParams{Token: "k", Email: "e", Code: "1", RequestID: "r", Password: "w"})
			return err
		},
		`POST /forgot-password {"email":"e","redirect_to":"/x"}`: func(ctx context.Context) error { return c.ResetPasswordForEmail(ctx, "e", "/x") },
		`POST /reset-password {"new_password":"w","token":"k"}`:  func(ctx context.Context) error { return c.ResetPassword(ctx, "k", "w") },
		`POST /me/password {"current_password":"v","new_password":"w"} Authorization=Bearer t`: func(ctx context.Context) error {
			return c.ChangePassword(ctx, "v", "w")
		},
		`POST /me/confirm {"password":"w","totp_code":"1"} Authorization=Bearer t`: func(ctx context.Context) error {
			_, err := c.Confirm(ctx, ConfirmParams{Password: "w", TOTPCode: "1"})
			return err
		},
		`POST /me/confirm {"passkey":{"id":"k"}} Authorization=Bearer t`: func(ctx context.Context) error {
			_, err := c.Confirm(ctx, ConfirmParams{Passkey: json.RawMessage(`{"id":"k"}`)})
			return err
		},
		`POST /secure-account {"token":"k"}`: func(ctx context.Context) error { return c.SecureAccount(ctx, "k") },
	} {
		if err := call(t.Context()); err == nil || s.request != want {
			t.Errorf("sent  %s\nwant  %s\n%v", s.request, want, err)
		}
	}
}

// The same for the admin side's queries, which have fields of several types. An answer
// that is an error is also an error to the caller.
func TestEveryQueryIsSent(t *testing.T) {
	t.Parallel()
	s := &sent{}
	a, err := NewAdmin("https://app.example.com", secretKey, WithHTTPClient(&http.Client{Transport: s}))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	for want, call := range map[string]func(context.Context) error{
		"GET /admin/sessions?aal=aal2&before=2026-01-02T02%3A04%3A05Z&client=Firefox&cursor=c&ip=192.0.2.1&limit=7&since=2026-01-02T02%3A04%3A05Z&user=u": func(ctx context.Context) error {
			_, err := a.SessionPage(ctx, SessionQuery{AAL: "aal2", Before: at, Client: "Firefox", Cursor: "c", IP: "192.0.2.1", Limit: 7, Since: at, User: "u"})
			return err
		},
		"GET /admin/sessions?limit=7": func(ctx context.Context) (err error) {
			for _, err = range a.Sessions(ctx, SessionQuery{Limit: 7}) {
			}
			return err
		},
		"GET /admin/audit-logs?limit=7": func(ctx context.Context) (err error) {
			for _, err = range a.AuditEvents(ctx, AuditQuery{Limit: 7}) {
			}
			return err
		},
		"GET /admin/users/u/sessions": func(ctx context.Context) error {
			_, err := a.UserSessions(ctx, "u")
			return err
		},
		"GET /admin/users/u/export": func(ctx context.Context) error {
			_, err := a.ExportUser(ctx, "u")
			return err
		},
	} {
		if err := call(t.Context()); err == nil || s.request != want+" Authorization=Bearer "+secretKey {
			t.Errorf("sent  %s\nwant  %s\n%v", s.request, want, err)
		}
	}
	yes := true
	if got := queryOf(struct {
		List []string          `query:"list"`
		Flag *bool             `query:"flag"`
		Meta map[string]string `query:"meta."`
		Kind auth.Code         `query:"kind"`
		None string            `query:"none"`
	}{[]string{"a", "b"}, &yes, map[string]string{"plan": "pro"}, "x", ""}).Encode(); got != "flag=true&kind=x&list=a%2Cb&meta.plan=pro" {
		t.Error(got)
	}
}
