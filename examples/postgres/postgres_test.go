package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// app is the running example, over HTTP.
type app struct {
	t     *testing.T
	url   string
	auth  *auth.Auth
	store *pgstore.Store
}

func start(t *testing.T) *app {
	t.Helper()
	store, err := open(t.Context(), pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	srv := httptest.NewUnstartedServer(nil)
	url := "http://" + srv.Listener.Addr().String()
	a, err := newAuth(t.Context(), store, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(context.Background()) })
	srv.Config.Handler = routes(a, store)
	srv.Start()
	t.Cleanup(srv.Close)
	return &app{t, url, a, store}
}

func (a *app) call(token, method, url, body string) (int, string) {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func (a *app) signUp(email, name string) (int, string) {
	a.t.Helper()
	return a.call("", "POST", a.url+"/auth/v1/signup", `{"email":"`+email+`","full_name":"`+name+`","password":"correct horse battery"}`)
}

// magicLink requests a link and completes it.
func (a *app) magicLink(email string) (int, string) {
	a.t.Helper()
	if status, body := a.call("", "POST", a.url+"/auth/v1/magic-link/send", `{"email":"`+email+`"}`); status != http.StatusOK {
		a.t.Fatalf("%d %s", status, body)
	}
	ctx, cancel := context.WithTimeout(a.t.Context(), 10*time.Second)
	defer cancel()
	m, err := a.auth.Inbox().Wait(ctx, func(m auth.Message) bool { return m.To == email && m.Kind == auth.KindMagicLink })
	if err != nil {
		a.t.Fatal(err)
	}
	_, token, _ := strings.Cut(m.Link, "token=")
	return a.call("", "POST", a.url+"/auth/v1/magic-link/verify", `{"token":"`+token+`"}`)
}

// wantHello fails the test unless a response has a session, and its user has a profile
// with this name.
func (a *app) wantHello(status int, body, name string) {
	a.t.Helper()
	var in struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil || status != http.StatusOK {
		a.t.Fatalf("%d %s", status, body)
	}
	if status, body := a.call(in.AccessToken, "GET", a.url+"/hello", ""); status != http.StatusOK || body != "Hello "+name+"\n" {
		a.t.Errorf("%d %s", status, body)
	}
}

// wantUsers fails the test unless there are this many users, each with a profile.
func (a *app) wantUsers(want int) {
	a.t.Helper()
	var users, profiles int
	err := a.store.Pool().QueryRow(a.t.Context(), "select (select count(*) from auth.users), (select count(*) from profiles)").Scan(&users, &profiles)
	if err != nil || users != want || profiles != want {
		a.t.Errorf("%d users and %d profiles, want %d: %v", users, profiles, want, err)
	}
}

func TestProfileComesWithTheAccount(t *testing.T) {
	a := start(t)
	status, body := a.signUp("ada@example.com", "Ada Lovelace")
	a.wantHello(status, body, "Ada Lovelace")
	status, body = a.magicLink("bob@example.com")
	a.wantHello(status, body, "bob@example.com")
	a.wantUsers(2)
	status, body = a.magicLink("ada@example.com") // no second profile
	a.wantHello(status, body, "Ada Lovelace")
	if status, body := a.signUp("ADA@example.com", "Ada Again"); status != http.StatusConflict || !strings.Contains(body, `"user_already_exists"`) {
		t.Errorf("%d %s", status, body)
	}
	a.wantUsers(2)
}

func TestNoAccountWithoutProfile(t *testing.T) {
	a := start(t)
	if status, body := a.signUp("eve@example.com", "Admin"); status != http.StatusUnprocessableEntity || !strings.Contains(body, `"validation_failed"`) || !strings.Contains(body, "This name is reserved.") {
		t.Errorf("a name that is reserved: %d %s", status, body)
	}
	a.wantUsers(0)
	status, body := a.signUp("eve@example.com", "Eve") // the email address is still free
	a.wantHello(status, body, "Eve")

	if _, err := a.store.Pool().Exec(t.Context(), "alter table profiles add constraint nobody_else check (name = 'Eve')"); err != nil {
		t.Fatal(err)
	}
	if status, body := a.signUp("mallory@example.com", "Mallory"); status != http.StatusInternalServerError || !strings.Contains(body, `"internal"`) || strings.Contains(body, "nobody_else") {
		t.Errorf("an error that the hook did not expect: %d %s", status, body)
	}
	if status, body := a.magicLink("carol@example.com"); status != http.StatusInternalServerError || !strings.Contains(body, `"internal"`) {
		t.Errorf("the same by magic link: %d %s", status, body)
	}
	a.wantUsers(1)
}
