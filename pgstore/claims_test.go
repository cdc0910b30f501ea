package pgstore_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// claimsOf returns the custom part of an access token.
func claimsOf(t *testing.T, env *authtest.Env, token string) map[string]any {
	t.Helper()
	c, err := env.Verify(token)
	if err != nil {
		t.Fatal(err)
	}
	return c.Custom
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// linkToken returns the token of the newest link of a kind, and empties the inbox for the
// next one.
func linkToken(t *testing.T, env *authtest.Env, to string, k store.Kind) string {
	t.Helper()
	_, token, ok := strings.Cut(env.Mail(t, to, k).Link, "token=")
	if !ok {
		t.Fatal("a message without a link")
	}
	env.Inbox.Clear()
	return token
}

// get requests a link without following redirects.
func get(t *testing.T, env *authtest.Env, path string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	rec := httptest.NewRecorder()
	env.Handler().ServeHTTP(rec, r)
	return rec
}

// Every sign-in method leads to a token with the function's current claims.
func TestClaimsFunction(t *testing.T) {
	s := openDatabase(t, pgstore.WithClaimsFunction("public.claims_for"))
	exec(t, s.Pool(), `create table public.org (name text); insert into public.org values ('acme');
		create function public.claims_for(user_id uuid) returns jsonb language sql stable as $$
			select jsonb_build_object('company', o.name, 'address', (select email from auth.users u where u.id = user_id),
				'sub', 'evil', 'role', 'postgres', 'roles', '["admin"]'::jsonb, 'aal', 'aal2', 'exp', 1, 'app_metadata', '{"admin": true}'::jsonb) from public.org o $$`)
	idp := authtest.StartProvider(t)
	env := authtest.NewOn(t, s, auth.WithProvider(idp.OIDC("dev")))
	idp.Now = env.Clock.Now
	org := "acme"
	check := func(what, email, token string) {
		t.Helper()
		want := map[string]any{"company": org, "address": email}
		if email == "" {
			want["address"] = nil
		}
		if got := claimsOf(t, env, token); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: claims %v, want %v", what, got, want)
		}
		c, _ := env.Verify(token)
		if c.UserID == "evil" || c.Role != "authenticated" || len(c.Roles) > 0 || c.AAL != store.LevelAAL1 || len(c.AppMetadata) > 0 {
			t.Errorf("%s: the function replaced %+v", what, c)
		}
	}
	tokens := must[*auth.Tokens](t)
	ctx := t.Context()

	res, err := env.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: authtest.Password})
	if err != nil {
		t.Fatal(err)
	}
	check("sign-up", "ada@example.com", res.Tokens.AccessToken)
	in := tokens(env.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}))
	check("login", "ada@example.com", in.AccessToken)
	org = "other"
	exec(t, s.Pool(), "update public.org set name = 'other'")
	check("refresh", "ada@example.com", tokens(env.Refresh(ctx, auth.RefreshParams{RefreshToken: in.RefreshToken})).AccessToken)
	check("refresh within grace", "ada@example.com", tokens(env.Refresh(ctx, auth.RefreshParams{RefreshToken: in.RefreshToken})).AccessToken)

	for what, email := range map[string]string{"magic link of a stranger": "bob@example.com", "magic link": "ada@example.com"} {
		if _, err := env.SendMagicLink(ctx, auth.SendMagicLinkParams{Email: email}); err != nil {
			t.Fatal(err)
		}
		check(what, email, tokens(env.VerifyMagicLink(ctx, auth.VerifyMagicLinkParams{Token: linkToken(t, env, email, store.KindMagicLink)})).AccessToken)
	}
	env.Clock.Advance(time.Hour)
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	if _, err := env.SendMagicLink(ctx, auth.SendMagicLinkParams{Email: "ada@example.com", RedirectTo: "https://app.test/in", CodeChallenge: challenge}); err != nil {
		t.Fatal(err)
	}
	press := httptest.NewRequestWithContext(ctx, http.MethodPost, "/auth/v1/magic-link/verify", strings.NewReader("token="+linkToken(t, env, "ada@example.com", store.KindMagicLink)))
	press.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	pressed := httptest.NewRecorder()
	env.Handler().ServeHTTP(pressed, press)
	to, err := url.Parse(pressed.Header().Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	check("exchange", "ada@example.com", tokens(env.Exchange(ctx, auth.ExchangeParams{Code: to.Query().Get("code"), CodeVerifier: verifier})).AccessToken)

	if _, err := env.SendPhoneCode(ctx, auth.SendPhoneCodeParams{Phone: "+4930123456"}); err != nil {
		t.Fatal(err)
	}
	check("phone code", "", tokens(env.VerifyPhoneCode(ctx, auth.VerifyPhoneCodeParams{Phone: "+4930123456", Code: env.Mail(t, "+4930123456", store.KindPhoneCode).Code})).AccessToken)

	fresh := env.LoginAs(t, "carol@example.com")
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/auth/v1/me/identities/dev", nil)
	fresh.Sign(r)
	rec := httptest.NewRecorder()
	env.Handler().ServeHTTP(rec, r)
	var start struct{ URL string }
	if err := json.Unmarshal(rec.Body.Bytes(), &start); err != nil {
		t.Fatalf("%v: %s", err, rec.Body)
	}
	idp.SignsIn(authtest.Person{Subject: "7", Email: "ada@work.test", EmailVerified: true})
	rec = get(t, env, "/auth/v1/oauth/dev/callback?"+idp.Authorize(t, start.URL).Encode(), rec.Result().Cookies()...)
	var linked struct {
		AccessToken string `json:"access_token"`
		User        store.User
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &linked); err != nil || linked.AccessToken == "" {
		t.Fatalf("%v: %s", err, rec.Body)
	}
	check("linking", "carol@example.com", linked.AccessToken)
}

// A function may return null for a user.
func TestClaimsFunctionNull(t *testing.T) {
	s := openDatabase(t, pgstore.WithClaimsFunction("public.claims_for"))
	exec(t, s.Pool(), "create function public.claims_for(uuid) returns jsonb language sql as 'select null::jsonb'")
	env := authtest.NewOn(t, s)
	res, err := env.SignUp(t.Context(), auth.SignUpParams{Email: "ada@example.com", Password: authtest.Password})
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{res.Tokens.AccessToken, env.LoginAs(t, "ada@example.com").AccessToken} {
		if c := claimsOf(t, env, token); len(c) != 0 {
			t.Errorf("claims %v", c)
		}
	}
}

// A missing function would lock everybody out: auth.New reports it first, while Migrate,
// which has to run before the function exists, does not.
func TestClaimsFunctionMissing(t *testing.T) {
	url := pgtest.Database(t)
	s := unmigrated(t, url, pgstore.WithClaimsFunction("public.claims_for"))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused := func(s *pgstore.Store, why string) {
		t.Helper()
		if err := newOn(t.Context(), s); err == nil || !strings.Contains(err.Error(), "the claims function cannot be called") || !strings.Contains(err.Error(), why) {
			t.Errorf("auth.New: %v, want %q", err, why)
		}
	}
	refused(s, "function public.claims_for(uuid) does not exist")
	exec(t, s.Pool(), "create function public.claims_for(uuid) returns jsonb language plpgsql immutable as $$ begin raise exception 'called'; end $$")
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("check: %v", err)
	}
	name, as := pgtest.Role(t, url)
	exec(t, s.Pool(), "revoke all on function public.claims_for from public; grant usage on schema auth to "+name+"; grant select on all tables in schema auth to "+name)
	refused(unmigrated(t, as, pgstore.WithClaimsFunction("public.claims_for")), "permission denied for function claims_for")
}

// A token without claims that policies rely on would be worse than none: a user for whom
// the function fails does not get in, and the log has the reason.
func TestClaimsFunctionFails(t *testing.T) {
	s := openDatabase(t, pgstore.WithClaimsFunction("public.claims_for"))
	exec(t, s.Pool(), "create function public.claims_for(uuid) returns jsonb language sql as $$ select '{}'::jsonb $$; create table public.users (id integer constraint users_pkey primary key); insert into public.users values (1)")
	var log lockedBuffer
	env := authtest.NewOn(t, s, auth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	in := env.LoginAs(t, "ada@example.com")
	for what, body := range map[string]struct{ body, logged string }{
		"raises":                  {"begin raise exception 'no org for %', $1; end", "no org for"},
		"misses a row":            {"declare o integer; begin select id into strict o from public.users where id = 7; return '{}'; end", "query returned no rows"},
		"violates a constraint":   {"begin insert into public.users values (1); return '{}'; end", "users_pkey"},
		"reads text as uuid":      {"begin return jsonb_build_object('id', 'nonsense'::text::uuid); end", "nonsense"},
		"returns no object":       {"begin return '[1]'; end", "cannot unmarshal array"},
		"refers to what is gone":  {"begin return (select to_jsonb(x) from public.gone x); end", "public.gone"},
		"says it was cancelled":   {"begin raise exception 'cancelled' using errcode = 'query_canceled'; end", "cancelled"},
		"says a user has no rows": {"begin raise exception 'nobody' using errcode = 'foreign_key_violation', schema = 'auth'; end", "nobody"},
	} {
		exec(t, s.Pool(), "create or replace function public.claims_for(uuid) returns jsonb language plpgsql as $f$ "+body.body+" $f$")
		for path, request := range map[string]string{
			"login":   `{"email":"ada@example.com","password":"` + authtest.Password + `"}`,
			"refresh": `{"refresh_token":"` + in.RefreshToken + `"}`,
			"signup":  `{"email":"` + strings.ReplaceAll(what, " ", ".") + `@example.com","password":"` + authtest.Password + `"}`,
		} {
			log.Reset()
			if status, answer := post(t, env, "/auth/v1/"+path, request); status != http.StatusServiceUnavailable || !strings.Contains(answer, `"unavailable"`) || strings.Contains(answer, body.logged) {
				t.Errorf("%s: %s answers %d %s", what, path, status, answer)
			}
			if !strings.Contains(log.String(), body.logged) {
				t.Errorf("%s: %s logged %s", what, path, &log)
			}
		}
	}
	if n := count(t, s.Pool(), "select count(*) from auth.users"); n != 1 {
		t.Errorf("%d users", n)
	}
	exec(t, s.Pool(), "create or replace function public.claims_for(uuid) returns jsonb language plpgsql as $$ begin return '{}'; end $$")
	if _, err := env.Refresh(t.Context(), auth.RefreshParams{RefreshToken: in.RefreshToken}); err != nil {
		t.Errorf("once the function works again: %v", err)
	}
	exec(t, s.Pool(), "drop function public.claims_for")
	if _, err := env.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}); !errors.Is(err, auth.CodeUnavailable) {
		t.Errorf("without the function: %v", err)
	}
}

// lockedBuffer is a log for concurrent use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lockedBuffer) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

// The function costs a login or refresh no additional statement.
func TestClaimsFunctionIsNoRoundTrip(t *testing.T) {
	costs := func(opts ...pgstore.Option) (login, refresh int) {
		c := &counter{}
		s := openTraced(t, c, opts...)
		sent := func() int {
			statements, limiter := c.taken()
			return len(statements) + limiter
		}
		exec(t, s.Pool(), "create function public.claims_for(uuid) returns jsonb language sql as $$ select '{\"a\": 1}'::jsonb $$")
		env := authtest.NewOn(t, s)
		env.LoginAs(t, "ada@example.com")
		sent()
		in, err := env.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
		if err != nil {
			t.Fatal(err)
		}
		login = sent()
		if _, err := env.Refresh(t.Context(), auth.RefreshParams{RefreshToken: in.RefreshToken}); err != nil {
			t.Fatal(err)
		}
		return login, sent()
	}
	login, refresh := costs()
	if l, r := costs(pgstore.WithClaimsFunction("public.claims_for")); l != login || r != refresh || login == 0 || refresh == 0 {
		t.Errorf("login takes %d statements and with claims %d, refresh %d and %d", login, l, refresh, r)
	}
}

// If Postgres inlines the function into the statement, its error has no trace of the
// function. It is still no answer about the account.
func TestClaimsFunctionFailsInline(t *testing.T) {
	s := openDatabase(t, pgstore.WithClaimsFunction("public.claims_for"))
	exec(t, s.Pool(), "create function public.claims_for(id uuid) returns jsonb language sql stable as $$ select '{}'::jsonb $$")
	env := authtest.NewOn(t, s)
	in := env.LoginAs(t, "ada@example.com")
	exec(t, s.Pool(), "create or replace function public.claims_for(id uuid) returns jsonb language sql stable as $$ select jsonb_build_object('company', ('x' || id::text)::uuid) $$")
	if _, err := env.Refresh(t.Context(), auth.RefreshParams{RefreshToken: in.RefreshToken}); !errors.Is(err, auth.CodeUnavailable) {
		t.Errorf("refresh: %v", err)
	}
	if _, err := env.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}); !errors.Is(err, auth.CodeUnavailable) {
		t.Errorf("login: %v", err)
	}
	if _, err := s.User(t.Context(), store.ByID("no id")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an id that is none: %v", err)
	}
}

// newOn creates an Auth on a store and returns the error.
func newOn(ctx context.Context, s *pgstore.Store) error {
	a, err := auth.New(ctx, s, auth.WithDevMode())
	if err == nil {
		err = errors.Join(errors.New("auth.New took the store"), a.Close(context.Background()))
	}
	return err
}
