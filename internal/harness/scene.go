package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

const (
	EvilPassword = "squatter horse battery"
	evilNew      = "squatter other battery"
	OwnPassword  = "rightful horse battery"
	OwnNew       = "rightful other battery"
	MustEnrol    = "Has To Enrol"
)

// ClassWorld is a service for many scenes, one after the other.
type ClassWorld struct {
	*World
	Tap    *storetap.Tap
	idp    *authtest.Provider
	Scenes int
	Known  bool // persons send their device's cookie
}

func NewClassWorldOn(t *testing.T, store auth.Store, r Row, more ...auth.Option) *ClassWorld {
	t.Helper()
	w := &ClassWorld{Tap: storetap.New(store), idp: authtest.StartProvider(t)}
	settings := auth.Settings{AccountDeletion: auth.On}
	if r.Confirm {
		settings.RequireConfirmation = auth.On
	}
	if r.Cookies {
		more = append(slices.Clone(more), auth.WithCookies(auth.CookieOptions{}))
	}
	w.World = &World{T: t, Log: &SyncBuffer{}}
	w.Env = authtest.NewOn(t, w.Tap, append([]auth.Option{
		WithPasskeys(),
		auth.WithProvider(w.idp.Google(), w.idp.GitHub(), w.idp.Facebook(), w.idp.Apple()),
		auth.WithRateLimits(auth.RateLimits{Off: true}),
		auth.WithMail(auth.MailOptions{Sync: true}),
		auth.WithLinks(auth.LinkOptions{SignInByGET: true}), // opening a magic link is one more way to sign in
		auth.WithSettings(settings),
		auth.WithMFA(auth.MFAOptions{RequiredFor: func(u auth.User) bool { return u.FullName == MustEnrol && u.Unverified() }}),
	}, more...)...)
	if err := CheapPasswords(w.Auth); err != nil {
		t.Fatal(err)
	}
	w.idp.Now = w.Clock.Now
	return w
}

// Scene is one account, its rightful owner, and the person who uses it.
type Scene struct {
	*ClassWorld
	row           Row
	Id            string // account id
	Email, Number string // of the owner
	Ada           authtest.Person

	Evil             *Person
	EvilMail         string
	EvilNumber       string
	face, Git, apple authtest.Person
	Session          Session // session that sends the request
	Secret           string  // of the second factor
	recovery         []string
	Mfa              bool // the second factor belongs to the owner

	Lost   bool     // the act took the account away
	Start  Snapshot // before the request
	Before Snapshot // after the act
	people int      // created so far
}

// NewScene creates a scene.
func (w *ClassWorld) NewScene(r Row) *Scene {
	w.T.Helper()
	w.Scenes++
	w.Inbox.Clear()
	n := w.Scenes
	s := &Scene{
		ClassWorld: w, row: r,
		Email: fmt.Sprintf("ada%d@example.com", n), Number: fmt.Sprintf("+4930%07d", n),
		EvilMail: fmt.Sprintf("evil%d@example.com", n), EvilNumber: fmt.Sprintf("+4940%07d", n),
	}
	s.Ada = authtest.Person{Subject: fmt.Sprintf("1%d", n), Email: s.Email, EmailVerified: true}
	s.face = authtest.Person{Subject: fmt.Sprintf("2%d", n), Email: s.Email}
	s.Git = authtest.Person{Subject: fmt.Sprintf("3%d", n), Email: s.EvilMail, EmailVerified: true}
	s.apple = authtest.Person{Subject: fmt.Sprintf("4%d", n), Email: s.EvilMail, EmailVerified: true}
	s.Evil = s.NewPerson(w.T.Context())
	switch r.Kind {
	case OnAddress:
		s.Enter(s.Evil.Send("POST", "/signup", map[string]any{"email": s.Email, "password": EvilPassword}).Want(200))
	case OnNumber:
		s.Enter(s.Evil.Send("POST", "/signup", map[string]any{"phone": s.Number, "password": EvilPassword}).Want(200))
	case OnIdentity:
		s.Enter(s.Evil.signIn("facebook", s.face, "").Want(200))
	case OnStolen:
		owner := s.NewPerson(w.T.Context())
		owner.Send("POST", "/signup", map[string]any{"email": s.Email, "password": OwnPassword}).Want(200)
		owner.Send("POST", "/verify-email", map[string]any{"token": s.token(s.Email, auth.KindVerifyEmail), "password": OwnPassword}).Want(200)
		s.Enter(s.Evil.Send("POST", "/login", map[string]any{"email": s.Email, "password": OwnPassword}).Want(200))
	}
	return s
}

// Enter makes a response's session the scene's session.
func (s *Scene) Enter(a *Answer) {
	s.Session = DecodeAs[Session](a)
	s.Id = s.Session.User.ID
}

// Authorization returns the header for requests in the session.
func (s *Scene) Authorization() Header { return Bearer(s.Session.AccessToken) }

// Enrols sets up a second factor in the session.
func (s *Scene) Enrols() {
	s.Secret = DecodeAs[struct{ Secret string }](s.Evil.Send("POST", "/2fa/setup-totp", nil, s.Authorization()).Want(200)).Secret
	a := s.Evil.Send("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": s.Code(s.Secret, 0)}, s.Authorization()).Want(200)
	s.recovery = DecodeAs[struct {
		RecoveryCodes []string `json:"recovery_codes"`
	}](a).RecoveryCodes
	s.Enter(a)
	s.Mfa = s.row.Kind == OnStolen
	s.Clock.Advance(60e9)
}

// hasToEnrol requires a second factor for the account's next session.
func (s *Scene) hasToEnrol() {
	name := MustEnrol
	s.Patch(s.Id, store.UserPatch{FullName: &name})
}

// mail returns the newest message of a kind to a recipient.
func (s *Scene) mail(to string, k auth.Kind) auth.Message {
	s.T.Helper()
	list := s.Inbox.Messages()
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].To == to && list[i].Kind == k {
			return list[i]
		}
	}
	s.T.Fatalf("no %s message to %s", k, to)
	return auth.Message{}
}

func (s *Scene) token(to string, k auth.Kind) string {
	s.T.Helper()
	u, err := url.Parse(s.mail(to, k).Link)
	if err != nil {
		s.T.Fatal(err)
	}
	return u.Query().Get("token")
}

// Lose performs an act. Its requests and store calls bypass the tap's hooks.
func (s *Scene) Lose(ctx context.Context, a Act) {
	s.T.Helper()
	if s.Id == "" {
		if u, err := s.Tap.Inner().User(ctx, store.ByEmail(s.Email)); err == nil {
			s.Id = u.ID
		}
	}
	system := store.Change{Now: s.Clock.Now(), By: auth.Authority{System: "test"}}
	var err error
	switch owner := s.NewPerson(ctx); a {
	case byProvider, byMagicLink, byCode:
		var got Session
		if answer := s.comes(owner, a); answer.Status == http.StatusOK {
			got = DecodeAs[Session](answer)
		}
		if s.Id == "" {
			s.Id = got.User.ID
		}
		s.Lost = s.Id != "" && got.User.ID == s.Id
	case byReset:
		owner.Send("POST", "/forgot-password", map[string]any{"email": s.Email}).Want(200)
		if u, err := s.Tap.Inner().User(ctx, store.ByEmail(s.Email)); err == nil && u.ID == s.Id {
			body := map[string]any{"token": s.token(s.Email, auth.KindResetPassword), "new_password": OwnNew}
			s.Lost = owner.Send("POST", "/reset-password", body).Status == http.StatusOK
		}
	case SignedOut:
		err = s.Logout(ctx, auth.LogoutParams{Caller: auth.ByApplication(s.Id), Scope: auth.LogoutGlobal})
		s.Lost = err == nil
	case Banned:
		until := s.Clock.Now().Add(1e6 * 3600e9)
		_, err = s.Tap.Inner().UpdateUser(ctx, store.UpdateUser{Change: system, UserID: s.Id, Patch: store.UserPatch{BannedUntil: &until}})
		s.Lost = err == nil
	case deleted:
		err = s.Tap.Inner().DeleteUser(ctx, store.DeleteUser{Change: system, UserID: s.Id})
		s.Lost = err == nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		s.T.Errorf("%s: %v", a, err)
	}
	s.Before = s.Look(ctx)
	// After these acts, credentials that were added before the act remain valid, as if the
	// request had come earlier.
	if a == SignedOut || (a == byReset && s.row.Kind == OnStolen) {
		s.Lost = s.Lost && len(s.Before.Credentials.User.Identities) == len(s.Start.Credentials.User.Identities)
	}
}

// comes signs the owner in.
func (s *Scene) comes(owner *Person, a Act) *Answer {
	switch a {
	case byProvider:
		return owner.signIn("google", s.Ada, "")
	case byMagicLink:
		owner.Send("POST", "/magic-link/send", map[string]any{"email": s.Email}).Want(200)
		return owner.Send("POST", "/magic-link/verify", map[string]any{"token": s.token(s.Email, auth.KindMagicLink)})
	case byReset:
		return owner.Send("POST", "/login", map[string]any{"email": s.Email, "password": OwnNew})
	default:
		owner.Send("POST", "/otp/send", map[string]any{"phone": s.Number}).Want(200)
		return owner.Send("POST", "/otp/verify", map[string]any{"phone": s.Number, "otp": s.mail(s.Number, auth.KindPhoneCode).Code})
	}
}

// Snapshot is all data of an account that an attacker could leave in it.
type Snapshot struct {
	Credentials store.Credentials
	Factors     store.Factors
	Sessions    []auth.Session
}

func (s *Scene) Look(ctx context.Context) (v Snapshot) {
	s.T.Helper()
	var err error
	st := s.Tap.Inner()
	if v.Credentials, err = st.Credentials(ctx, store.ByID(s.Id)); err != nil && !errors.Is(err, store.ErrNotFound) {
		s.T.Error(err)
	}
	factors, _ := store.Capability[store.FactorStore](st)
	if v.Factors, err = factors.Factors(ctx, s.Id); err != nil {
		s.T.Error(err)
	}
	if v.Sessions, err = st.Sessions(ctx, s.Id, s.Clock.Now()); err != nil {
		s.T.Error(err)
	}
	return v
}

// Changed returns the differences to an earlier snapshot.
func (v Snapshot) Changed(before Snapshot) []string {
	var list []string
	a, b := reflect.ValueOf(before.Credentials.User), reflect.ValueOf(v.Credentials.User)
	for i := range a.NumField() {
		if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			list = append(list, fmt.Sprintf("%s is %v and was %v", a.Type().Field(i).Name, b.Field(i).Interface(), a.Field(i).Interface()))
		}
	}
	if v.Credentials.PasswordHash != before.Credentials.PasswordHash {
		list = append(list, "another password")
	}
	if !reflect.DeepEqual(v.Factors, before.Factors) {
		list = append(list, "other second factors")
	}
	if !reflect.DeepEqual(v.Sessions, before.Sessions) {
		list = append(list, "other sessions")
	}
	return list
}
