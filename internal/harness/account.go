package harness

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// Reauthenticate confirms a session with a credential.
func (w *World) Reauthenticate(s Session, body map[string]any) *Answer {
	w.T.Helper()
	return w.Do("POST", "/me/confirm", body, Bearer(s.AccessToken))
}

const GoodPassword = "correct horse battery"

// PostSignUp signs an account up over HTTP.
func (w *World) PostSignUp(email string) Session {
	w.T.Helper()
	return w.Do("POST", "/signup", map[string]any{"email": email, "password": GoodPassword}).Session()
}

// Member signs up an account and verifies its email address.
func (w *World) Member(email string) Session {
	w.T.Helper()
	s := w.PostSignUp(email)
	w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken(email, auth.KindVerifyEmail)}, Bearer(s.AccessToken)).Want(200)
	return s
}

// Squatter signs up an account with an unverified email address and a verified phone
// number, so that credentials can be added to it.
func (w *World) Squatter(email string) Session {
	w.T.Helper()
	s := w.PostSignUp(email)
	w.Patch(s.User.ID, store.UserPatch{Link: &auth.Identity{ID: uuid.NewString(), Provider: "facebook", Subject: "669", CreatedAt: w.Clock.Now()}})
	return s
}

// LinkToken waits for a message and returns the token of its link.
func (w *World) LinkToken(to string, k auth.Kind) string {
	w.T.Helper()
	u, err := url.Parse(w.Mail(w.T, to, k).Link)
	if err != nil {
		w.T.Fatal(err)
	}
	return u.Query().Get("token")
}

// Alive reports whether /me accepts an access token.
func (w *World) Alive(access string) bool {
	w.T.Helper()
	return w.Do("GET", "/me", nil, Bearer(access)).Status == http.StatusOK
}

// Invited invites an email address as package admin does and returns the link's token.
func (w *World) Invited(email string, roles ...string) string {
	w.T.Helper()
	kit, ctx := host.Of(w), w.T.Context()
	kit.CheckInvitations(func(context.Context, host.Invitation) (host.Terms, error) {
		return host.Terms{}, nil
	})
	inv, err := kit.CheckInvitation(host.Invitation{Email: email, Roles: roles, By: auth.Actor{Kind: store.ActorSystem, ID: "test"}}, 0)
	if err != nil {
		w.T.Fatal(err)
	}
	c := kit.Change(ctx, auth.Authority{System: "test"})
	if err := kit.Invite(ctx, &c, &host.Send{}, inv, nil); err != nil {
		w.T.Fatal(err)
	}
	kit.Committed(ctx, c, nil)
	return w.LinkToken(email, auth.KindInvitation)
}

// UsualCost is the default cost of hashing, for tests that measure it; authtest lowers it.
var UsualCost = auth.Argon2idParams{Memory: 19456, Time: 2, Threads: 1} //nolint:gochecknoglobals // a constant

func (w *World) DeleteSession(s Session) {
	w.T.Helper()
	w.Do("POST", "/logout", nil, Bearer(s.AccessToken)).Want(204)
}

// Later returns the code of the next time step.
func (w *World) Later(secret string) string {
	w.Clock.Advance(time.Minute)
	return w.Code(secret, 0)
}

// PostConfirm verifies the email address of an account with GoodPassword, by its link and password.
func (w *World) PostConfirm(email string) {
	w.T.Helper()
	w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken(email, auth.KindVerifyEmail), "password": GoodPassword}).Want(200)
}

func (w *World) PostLogin(email, password string) *Answer {
	w.T.Helper()
	return w.Do("POST", "/login", map[string]any{"email": email, "password": password})
}

// Link starts to link an identity and returns the provider's URL.
func (v *Visitor) Link(provider string, s Session, body any) string {
	v.T.Helper()
	return DecodeAs[map[string]string](v.Do("POST", "/me/identities/"+provider, body, Bearer(s.AccessToken)).Want(200))["url"]
}

// StopToken waits for a notice and returns the token of its account recovery link.
func (w *World) StopToken(to string, k auth.Kind) string {
	w.T.Helper()
	m := w.Mail(w.T, to, k)
	u, err := url.Parse(m.Link)
	if err != nil || !strings.HasSuffix(u.Path, "/secure-account") || !strings.Contains(m.Text, m.Link) {
		w.T.Fatalf("link %q in %q", m.Link, m.Text)
	}
	return u.Query().Get("token")
}

// SignInAgain signs a user in once more.
func (w *World) SignInAgain(email string) Session {
	w.T.Helper()
	return w.Do("POST", "/login", map[string]any{"email": email, "password": GoodPassword}).Session()
}

// ChangeEmailTo changes an account's email address and returns the first notice's token.
func (w *World) ChangeEmailTo(s Session, from, to string) string {
	w.T.Helper()
	w.Do("PATCH", "/me", map[string]any{"email": to}, Bearer(s.AccessToken)).Want(200)
	token := w.StopToken(from, auth.KindEmailChangeRequested)
	w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken(to, auth.KindChangeEmail)}, Bearer(s.AccessToken)).Want(200)
	return token
}

// ShownCode presses "That was me" on the page of a link to a new address, in a browser
// that is not signed in, and returns the code that the page shows.
func (w *World) ShownCode(token string) string {
	w.T.Helper()
	a := w.Do("POST", "/verify-email", "token="+token+"&show_code=1", Form, Browser).Want(200)
	return shownCode(w.T, a)
}

// ShownCode is World.ShownCode for a person.
func (p *Person) ShownCode(token string) string {
	p.S.T.Helper()
	return shownCode(p.S.T, p.Send("POST", "/verify-email", "token="+token+"&show_code=1", Form, Browser).Want(200))
}

func shownCode(t testing.TB, a *Answer) string {
	t.Helper()
	_, after, _ := strings.Cut(string(a.Body), `<p class="code">`)
	code, _, ok := strings.Cut(after, "<")
	if !ok {
		t.Fatalf("no code on the page: %s", a.Body)
	}
	return code
}

var SendsAtOnce = auth.WithMail(auth.MailOptions{Sync: true})

func (w *World) PostRefresh(token string) *Answer {
	w.T.Helper()
	return w.Do("POST", "/refresh", map[string]any{"refresh_token": token})
}

const BcryptHash = "$2a$04$49naKluVAA8PZ9/Md4snduZxJTOzKK8/tYyhRZetdNcIo4pCRTRLK"

// Imported imports a user.
func (w *World) Imported(p auth.ImportUserParams) auth.User {
	w.T.Helper()
	u, err := w.ImportUser(w.T.Context(), p)
	if err != nil {
		w.T.Fatal(err)
	}
	return u
}
