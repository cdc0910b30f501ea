package signin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/passhash"
	"github.com/authmount/auth/store"
)

func TestSignUpSignsIn(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.Do("POST", "/auth/v1/signup", map[string]any{
		"email": " Ada@EXAMPLE.com ", "password": harness.GoodPassword, "full_name": "Ada Lovelace",
		"user_metadata": map[string]any{"theme": "dark"}, "redirect_to": "https://app.test/welcome",
	}).Session()
	if s.User.Email != "Ada@example.com" || s.User.EmailVerified || s.User.FullName != "Ada Lovelace" || s.User.UserMetadata["theme"] != "dark" {
		t.Errorf("user %+v", s.User)
	}
	w.WantEvents(auth.EventSignedUp, auth.EventSignedIn)
	if !w.Alive(s.AccessToken) {
		t.Error("the access token does not work")
	}
	m := w.Mail(t, "Ada@example.com", auth.KindVerifyEmail)
	if !strings.HasPrefix(m.Link, authtest.BaseURL+"/verify-email?token=") {
		t.Errorf("link %q", m.Link)
	}
}

func TestSignUpRefuses(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	w.PostSignUp("taken@example.com")
	w.Fired()
	for name, c := range map[string]struct {
		body   string
		status int
		code   auth.Code
	}{
		"no e-mail":            {`{"password":"correct horse battery"}`, 422, auth.CodeValidationFailed},
		"no number":            {`{"phone":"123","password":"correct horse battery"}`, 422, auth.CodeValidationFailed},
		"no password":          {`{"email":"a@example.com"}`, 422, auth.CodeValidationFailed},
		"not an address":       {`{"email":"a@b@example.com","password":"correct horse battery"}`, 422, auth.CodeValidationFailed},
		"two addresses":        {`{"email":"a@example.com,b@example.com","password":"correct horse battery"}`, 422, auth.CodeValidationFailed},
		"array of addresses":   {`{"email":["a@example.com","b@example.com"],"password":"correct horse battery"}`, 400, auth.CodeBadJSON},
		"display name":         {`{"email":"A <a@example.com>","password":"correct horse battery"}`, 422, auth.CodeValidationFailed},
		"header injection":     {`{"email":"a@example.com\r\nBcc: b@example.com","password":"correct horse battery"}`, 422, auth.CodeValidationFailed},
		"bidi in the address":  {`{"email":"a\u202eb@example.com","password":"correct horse battery"}`, 422, auth.CodeValidationFailed},
		"short password":       {`{"email":"a@example.com","password":"kQ9#xz1"}`, 422, auth.CodeWeakPassword},
		"common password":      {`{"email":"a@example.com","password":"Password123!"}`, 422, auth.CodeWeakPassword},
		"address as password":  {`{"email":"adalovelace@example.com","password":"adalovelace1"}`, 422, auth.CodeWeakPassword},
		"endless password":     {`{"email":"a@example.com","password":"` + strings.Repeat("ab c", 100) + `"}`, 422, auth.CodeWeakPassword},
		"taken":                {`{"email":"TAKEN@example.com","password":"correct horse battery"}`, 409, auth.CodeUserAlreadyExists},
		"foreign redirect":     {`{"email":"a@example.com","password":"correct horse battery","redirect_to":"https://evil.test/"}`, 400, auth.CodeRedirectNotAllowed},
		"metadata no object":   {`{"email":"a@example.com","password":"correct horse battery","user_metadata":[1]}`, 400, auth.CodeBadJSON},
		"metadata too large":   {`{"email":"a@example.com","password":"correct horse battery","user_metadata":{"a":"` + strings.Repeat("x", 17<<10) + `"}}`, 422, auth.CodeValidationFailed},
		"null in metadata":     {`{"email":"a@example.com","password":"correct horse battery","user_metadata":{"a":"\u0000"}}`, 422, auth.CodeValidationFailed},
		"line break in a name": {`{"email":"a@example.com","password":"correct horse battery","full_name":"A\nB"}`, 422, auth.CodeValidationFailed},
		"password twice":       {`{"email":"a@example.com","password":"correct horse battery","password":"x"}`, 400, auth.CodeBadJSON},
		"name in capitals":     {`{"EMAIL":"a@example.com","password":"correct horse battery"}`, 422, auth.CodeValidationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w.T = t
			w.Do("POST", "/signup", c.body).Want(c.status, c.code)
			w.WantEvents()
		})
	}
	if _, err := w.Store.User(t.Context(), store.ByEmail("a@example.com")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("bad input left a user behind: %v", err)
	}
}

func TestWeakPasswordTellsReasons(t *testing.T) {
	w := harness.NewWorld(t)
	a := w.Do("POST", "/signup", map[string]any{"email": "qwertz@example.com", "password": "qwerty"}).Want(422, auth.CodeWeakPassword)
	if !strings.Contains(string(a.Body), `"reasons":["length","common"]`) {
		t.Errorf("%s", a.Body)
	}
}

// Mass assignment: a body cannot set the server's fields.
func TestSignUpIgnoresServerFields(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.Do("POST", "/signup", map[string]any{
		"email": "a@example.com", "password": harness.GoodPassword, "id": "x", "roles": []string{"admin"}, "email_verified": true,
		"app_metadata": map[string]any{"admin": true}, "userId": "x", "banned_until": nil,
	}).Session()
	if s.User.EmailVerified || len(s.User.Roles) > 0 || len(s.User.AppMetadata) > 0 || s.User.ID == "x" {
		t.Errorf("user %+v", s.User)
	}
}

// Enumeration: with confirmation required, an address that has an account is
// answered as one that has none, for the same hashing work.
func TestSignUpIsNoOracle(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	body := map[string]any{"email": "ada@example.com", "password": harness.GoodPassword, "full_name": "Ada", "user_metadata": map[string]any{"a": 1.0}}
	before := harness.HashWorks(w.Auth)
	first := w.Do("POST", "/signup", body).Want(200)
	work := harness.HashWorks(w.Auth) - before
	again := w.Do("POST", "/signup", body).Want(200)
	if got := harness.HashWorks(w.Auth) - before - work; got != work || work == 0 {
		t.Errorf("work %d for a known address, %d for an unknown one", got, work)
	}
	a, b := harness.DecodeAs[map[string]any](first), harness.DecodeAs[map[string]any](again)
	ua, ub := a["user"].(map[string]any), b["user"].(map[string]any)
	if ua["id"] == ub["id"] {
		t.Error("the made-up user has the real one's id")
	}
	for _, k := range []string{"id"} {
		delete(ua, k)
		delete(ub, k)
	}
	if x, y := a["request_id"].(string), b["request_id"].(string); x == y || len(x) != len(y) || x == "" {
		t.Errorf("request ids %q, %q", x, y)
	}
	delete(a, "request_id")
	delete(b, "request_id")
	if !reflect.DeepEqual(a, b) {
		t.Errorf("answers differ:\n%v\n%v", a, b)
	}
	if m := w.Mail(t, "ada@example.com", auth.KindAccountExists); !strings.Contains(m.Link, "/reset-password?token=") {
		t.Errorf("link %q", m.Link)
	}
}

func TestLogin(t *testing.T) {
	w := harness.NewWorld(t)
	w.PostSignUp("ada@example.com")
	w.Fired()
	s := w.Do("POST", "/login", map[string]any{"email": "ADA@Example.Com", "password": harness.GoodPassword}).Session()
	w.WantEvents(auth.EventSignedIn)
	if s.User.Email != "ada@example.com" {
		t.Errorf("user %+v", s.User)
	}
}

// Enumeration: unknown user, user without a password, wrong password: the same
// answer for the same work.
func TestLoginFailuresAreAlike(t *testing.T) {
	w := harness.NewWorld(t)
	w.PostSignUp("ada@example.com")
	if _, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: "nopass@example.com"}); err != nil {
		t.Fatal(err)
	}
	w.Fired()
	var bodies []string
	for _, email := range []string{"ada@example.com", "nopass@example.com", "nobody@example.com"} {
		before := harness.HashWorks(w.Auth)
		a := w.Do("POST", "/login", map[string]any{"email": email, "password": "wrong horse battery"}, harness.Header{Name: "X-Request-Id", Value: "same"})
		a.Want(401, auth.CodeInvalidCredentials)
		if got := harness.HashWorks(w.Auth) - before; got != 1 {
			t.Errorf("%s: %d hashes computed, want 1", email, got)
		}
		bodies = append(bodies, string(a.Body)+fmt.Sprint(a.Header))
		w.WantEvents(auth.EventSignInFailed)
	}
	if bodies[0] != bodies[1] || bodies[1] != bodies[2] {
		t.Errorf("answers differ: %q", bodies)
	}
}

// Where confirmation is required, a login after a sign-up does not reveal whether the
// address was taken: the right password is answered, counted and reported as a wrong one.
func TestLoginNeedsConfirmation(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Want(200)
	first := w.LinkToken("ada@example.com", auth.KindVerifyEmail)
	var seen []string
	for _, p := range []map[string]any{
		{"email": "ada@example.com", "password": "wrong horse battery"},
		{"email": "ada@example.com", "password": harness.GoodPassword},
		{"email": "nobody@example.com", "password": harness.GoodPassword},
	} {
		w.Fired()
		a := w.Do("POST", "/login", p, harness.Header{Name: "X-Request-Id", Value: "same"}).Want(401, auth.CodeInvalidCredentials)
		seen = append(seen, fmt.Sprint(string(a.Body), a.Header, w.Fired()))
	}
	if seen[0] != seen[1] || seen[1] != seen[2] || !strings.Contains(seen[0], "or the address is not confirmed yet") || !strings.Contains(seen[0], "sign_in.failed") {
		t.Errorf("answers %q", seen)
	}
	// The right password gets a fresh link, which supersedes the first.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	m, err := w.Inbox.Wait(ctx, func(m auth.Message) bool {
		return m.Kind == auth.KindVerifyEmail && !strings.HasSuffix(m.Link, first)
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Do("POST", "/verify-email", map[string]any{"token": first}).Want(400, auth.CodeInvalidToken)
	w.Do("POST", "/verify-email", map[string]any{"token": m.Link[strings.Index(m.Link, "token=")+len("token="):], "password": harness.GoodPassword}).Want(200)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Want(200)
	for range 10 {
		w.Do("POST", "/signup", map[string]any{"email": "cyd@example.com", "password": harness.GoodPassword})
		w.Do("POST", "/login", map[string]any{"email": "cyd@example.com", "password": harness.GoodPassword}).Want(401, auth.CodeInvalidCredentials)
	}
	w.Do("POST", "/login", map[string]any{"email": "cyd@example.com", "password": harness.GoodPassword}).Want(429, auth.CodeRateLimited)
}

func TestBannedUsers(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	until := w.Clock.Now().Add(time.Hour)
	w.Patch(s.User.ID, store.UserPatch{BannedUntil: &until})
	w.Do("GET", "/me", nil, harness.Bearer(s.AccessToken)).Want(403, auth.CodeUserBanned)
	w.Do("POST", "/refresh", map[string]any{"refresh_token": s.RefreshToken}).Want(403, auth.CodeUserBanned)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "wrong horse battery"}).Want(401, auth.CodeInvalidCredentials)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Want(403, auth.CodeUserBanned)
	w.Do("POST", "/magic-link/send", map[string]any{"email": "ada@example.com"}).Want(200)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindMagicLink)}).Want(403, auth.CodeUserBanned)
	w.Clock.Advance(time.Hour)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Want(200)
}

func TestSwitchedOff(t *testing.T) {
	for name, c := range map[string]struct {
		settings auth.Settings
		path     string
		body     any
		status   int
		code     auth.Code
	}{
		"all, login":     {auth.Settings{Enabled: auth.Off}, "/login", map[string]any{"email": "a@example.com", "password": "x"}, 401, auth.CodeInvalidCredentials}, // as for an unknown account; see TestSwitchedOffLetsIn
		"all, sign-up":   {auth.Settings{Enabled: auth.Off}, "/signup", map[string]any{"email": "a@example.com", "password": harness.GoodPassword}, 404, auth.CodeNotFound},
		"sign-up":        {auth.Settings{SignUp: auth.Off}, "/signup", map[string]any{"email": "a@example.com", "password": harness.GoodPassword}, 403, auth.CodeSignupDisabled},
		"by password":    {auth.Settings{Password: auth.Off}, "/signup", map[string]any{"email": "a@example.com", "password": harness.GoodPassword}, 403, auth.CodeMethodDisabled},
		"by number":      {auth.Settings{Phone: auth.Off}, "/signup", map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword}, 403, auth.CodeMethodDisabled},
		"password login": {auth.Settings{Password: auth.Off}, "/login", map[string]any{"email": "a@example.com", "password": "x"}, 403, auth.CodeMethodDisabled},
		"reset":          {auth.Settings{Password: auth.Off}, "/forgot-password", map[string]any{"email": "a@example.com"}, 403, auth.CodeMethodDisabled},
		"reset by token": {auth.Settings{Password: auth.Off}, "/reset-password", map[string]any{"token": "x", "new_password": harness.GoodPassword}, 403, auth.CodeMethodDisabled},
		"magic link":     {auth.Settings{MagicLink: auth.Off, Passkey: auth.Off}, "/magic-link/send", map[string]any{"email": "a@example.com"}, 403, auth.CodeMethodDisabled},
	} {
		t.Run(name, func(t *testing.T) {
			harness.NewWorld(t, auth.WithSettings(c.settings)).Do("POST", c.path, c.body).Want(c.status, c.code)
		})
	}
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{Enabled: auth.Off}))
	if s := w.PublicSettings(t.Context()); s.Enabled || s.SignupEnabled {
		t.Errorf("switched off, and yet %+v", s)
	}
	for _, path := range []string{"/settings", "/openapi.json", "/.well-known/jwks.json", "/.well-known/openid-configuration"} {
		w.Do("GET", path, nil).Want(404, auth.CodeNotFound)
	}
	w.Do("GET", "/healthz", nil).Want(200)
}

// Limits: failures count, successes do not, and the right password beyond the limit is refused.
func TestLoginLimit(t *testing.T) {
	w := harness.NewWorld(t)
	w.PostSignUp("ada@example.com")
	login := func(password string) *harness.Answer {
		return w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": password})
	}
	for range 12 {
		login(harness.GoodPassword).Want(200)
	}
	for range 9 {
		login("wrong horse battery").Want(401)
	}
	login(harness.GoodPassword).Want(200) // and the count starts anew
	for range 10 {
		login("wrong horse battery").Want(401)
	}
	if a := login(harness.GoodPassword).Want(429, auth.CodeRateLimited); a.Header.Get("Retry-After") != "30" {
		t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
	}
	// The owner is not locked out of recovery.
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
	w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": "another horse battery"}).Want(200)
	login("another horse battery").Want(200)
}

// Limits: parallel attempts do not exceed the limit.
func TestParallelGuesses(t *testing.T) {
	w := harness.NewWorld(t)
	w.PostSignUp("ada@example.com")
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		count = map[int]int{}
	)
	for range 60 {
		wg.Go(func() {
			_, err := w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: "wrong horse battery"})
			var e *auth.Error
			if !errors.As(err, &e) {
				t.Errorf("error %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			count[e.Status]++
		})
	}
	wg.Wait()
	if count[http.StatusUnauthorized] != 10 || count[http.StatusTooManyRequests] != 50 {
		t.Errorf("answers %v, want 10 times 401 and 50 times 429", count)
	}
}

func TestImportUser(t *testing.T) {
	w := harness.NewWorld(t)
	// bcrypt of "correct horse battery"
	u, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: "old@example.com", PasswordHash: harness.BcryptHash, EmailVerified: true, Roles: []string{"editor"}})
	if err != nil {
		t.Fatal(err)
	}
	w.Do("POST", "/login", map[string]any{"email": "old@example.com", "password": "wrong horse battery"}).Want(401)
	w.Do("POST", "/login", map[string]any{"email": "old@example.com", "password": harness.GoodPassword}).Want(200)
	c, err := w.Store.Credentials(t.Context(), store.ByID(u.ID))
	if err != nil || !strings.HasPrefix(c.PasswordHash, "$argon2id$") {
		t.Errorf("the hash was not renewed: %q, %v", c.PasswordHash, err)
	}
	w.Do("POST", "/login", map[string]any{"email": "old@example.com", "password": harness.GoodPassword}).Want(200)
	for name, p := range map[string]auth.ImportUserParams{
		"unknown format": {Email: "b@example.com", PasswordHash: "md5:abc"},
		"hostile cost":   {Email: "b@example.com", PasswordHash: "$argon2id$v=19$m=4194304,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA"},
		"bad address":    {Email: "b"},
		"null metadata":  {Email: "b@example.com", AppMetadata: map[string]any{"a": "\x00"}},
		"null in a role": {Email: "b@example.com", Roles: []string{"a\x00"}},
		"nameless role":  {Email: "b@example.com", Roles: []string{""}},
	} {
		if _, err := w.ImportUser(t.Context(), p); !errors.Is(err, auth.CodeValidationFailed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: "OLD@example.com"}); !errors.Is(err, auth.CodeUserAlreadyExists) {
		t.Errorf("taken address: %v", err)
	}
}

// The part of a password beyond the limit of bcrypt is checked, too: knowing only the first
// part does not open an imported hash.
func TestImportedBcryptReadsTheWhole(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	long := strings.Repeat("long word", 8) // 72 bytes
	for email, password := range map[string]string{"long@example.com": long, "short@example.com": "long word"} {
		hash, err := passhash.MakeBcrypt(password, 4)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: email, PasswordHash: hash, EmailVerified: true}); err != nil {
			t.Fatal(err)
		}
	}
	login := func(email, password string) *harness.Answer {
		t.Helper()
		before := harness.HashWorks(w.Auth)
		a := w.Do("POST", "/login", map[string]any{"email": email, "password": password})
		if works := harness.HashWorks(w.Auth) - before; a.Status == 401 && works != 1 {
			t.Errorf("%q: %d hashes", password, works)
		}
		return a
	}
	login("long@example.com", long+"s").Want(401, auth.CodeInvalidCredentials)
	login("long@example.com", long+"\x00").Want(401, auth.CodeInvalidCredentials)
	login("short@example.com", "long word\x00long word").Want(401, auth.CodeInvalidCredentials)
	login("long@example.com", long).Want(200)
	login("short@example.com", "long word").Want(200)
	login("long@example.com", long+"s").Want(401, auth.CodeInvalidCredentials) // renewed by now
}
