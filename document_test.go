package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// The statuses of every operation, compared with a committed listing, so that
// every change of them is one that somebody meant.
func TestDocumentListing(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]any `json:"responses"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(harness.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			statuses := slices.Sorted(maps.Keys(doc.Paths[path][method].Responses))
			lines = append(lines, strings.ToUpper(method)+" "+path+" → "+strings.Join(statuses, " ")+"\n")
		}
	}
	const listing = "testdata/operations.txt"
	if *harness.Update {
		if err := os.WriteFile(listing, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(listing)
	if err != nil {
		t.Fatal(err)
	}
	old := slices.Collect(strings.Lines(string(want)))
	for _, l := range lines {
		if !slices.Contains(old, l) {
			t.Errorf("+ %s", l)
		}
	}
	for _, l := range old {
		if !slices.Contains(lines, l) {
			t.Errorf("- %s", l)
		}
	}
	if t.Failed() {
		t.Log("if this is meant: go test -run TestDocumentListing -update .")
	}
}

// The document itself is committed, too: for clients to generate from, and so
// that a change of it is seen.
func TestDocumentFile(t *testing.T) {
	var doc bytes.Buffer
	if err := json.Indent(&doc, harness.Document(), "", "  "); err != nil {
		t.Fatal(err)
	}
	doc.WriteByte('\n')
	const name = "openapi.json"
	if *harness.Update {
		if err := os.WriteFile(name, doc.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if committed, err := os.ReadFile(name); err != nil || !bytes.Equal(committed, doc.Bytes()) {
		t.Errorf("%s is not what the handler serves (%v): go test -run TestDocumentFile -update .", name, err)
	}
}

// drawStore notes the rates that are drawn from.
type drawStore struct {
	auth.Store
	mu    sync.Mutex
	drawn map[auth.Rate]bool
}

func (d *drawStore) Unwrap() auth.Store { return d.Store }

func (d *drawStore) Take(ctx context.Context, draws []store.Draw, now time.Time) (store.Decision, error) {
	d.note(draws...)
	return d.Store.Take(ctx, draws, now)
}

func (d *drawStore) AdvanceSession(ctx context.Context, c store.Advance) (auth.Session, auth.User, error) {
	d.note(c.Draw)
	return d.Store.AdvanceSession(ctx, c)
}

func (d *drawStore) note(draws ...store.Draw) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, draw := range draws {
		if draw.Cost >= 0 { // what is given back was drawn by an earlier request
			d.drawn[draw.Rate] = true
		}
	}
}

// names returns the limits that were drawn from since the last call, sorted. A
// limit is known by its rate, which is like no other.
func (d *drawStore) names(limits auth.RateLimits) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	v := reflect.ValueOf(limits)
	for i := range v.NumField() {
		if strings.HasPrefix(v.Type().Field(i).Name, "Notices") {
			continue // refuses nobody
		}
		if r, ok := v.Field(i).Interface().(auth.Rate); ok && d.drawn[r] {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	clear(d.drawn)
	slices.Sort(names)
	return names
}

// The limits of the route table are those that its operations draw from.
func TestLimitsOfRoutes(t *testing.T) {
	var limits auth.RateLimits
	v := reflect.ValueOf(&limits).Elem()
	for i := range v.NumField() {
		if r, ok := v.Field(i).Addr().Interface().(*auth.Rate); ok {
			*r = auth.Rate{Burst: 1000 + i, Per: time.Minute}
		}
	}
	idp := authtest.StartProvider(t)
	store := &drawStore{Store: harness.NewStore(t), drawn: map[auth.Rate]bool{}}
	w := &harness.World{T: t, Env: authtest.NewOn(t, store, auth.WithProvider(idp.Google()), auth.WithRateLimits(limits), auth.WithMail(auth.MailOptions{Sync: true}))}
	idp.Now = w.Clock.Now

	const number = "+4930123456"
	ada, ben := w.LoginAs(t, "ada@example.com"), w.PostSignUp("ben@example.com")
	caller := harness.DecodeAs[harness.Session](w.PostOTP(number, w.PhoneCode(number)).Want(200))
	second := w.Enrol(caller.AccessToken)
	cyd := w.LoginAs(t, "cyd@example.com")
	cydSecond := w.Enrol(cyd.AccessToken)
	setup := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(ben.AccessToken)).Want(200))
	code := w.PhoneCode(number)
	login := map[string]any{"email": "cyd@example.com", "password": authtest.Password}
	mfa := harness.DecodeAs[struct {
		Token string `json:"mfa_token"`
	}](w.Do("POST", "/login", login).Want(403)).Token
	store.names(limits)

	// What makes an account, with an address that nobody vouches for.
	magic := []string{w.MagicLink("m1@example.com", nil), w.MagicLink("m2@example.com", nil)}
	opened := w.Opened(w.MagicLink("m4@example.com", harness.BoundToBrowser()))
	byCode := w.AskByMail("m3@example.com", nil)
	first := w.PhoneCode("+4930222222")
	who := func(s string) authtest.Person { return authtest.Person{Subject: s, Email: s + "@example.com"} }
	back := func(s string, come func(v *harness.Visitor, with string) *harness.Answer) func() *harness.Answer {
		v := w.NewVisitor(idp)
		to := v.Start("google", "")
		idp.SignsIn(who(s))
		with := idp.Authorize(t, to).Encode()
		return func() *harness.Answer { return come(v, with) }
	}
	callbacks := map[string]func() *harness.Answer{
		"GET /oauth/{provider}/callback": back("c1", func(v *harness.Visitor, with string) *harness.Answer {
			return v.Do("GET", "/oauth/google/callback?"+with, nil)
		}),
		"POST /oauth/{provider}/callback": back("c2", func(v *harness.Visitor, with string) *harness.Answer {
			return v.Do("POST", "/oauth/google/callback", with, harness.Form)
		}),
	}
	invited := w.Invited("invited@example.com")
	store.names(limits)

	covered := map[string][]string{}
	table := harness.RouteLimits(w.Auth)
	for _, step := range []struct {
		route string
		body  map[string]any
		token string
		want  int
	}{
		{"POST /signup", map[string]any{"email": "eve@example.com", "password": harness.GoodPassword}, "", 200},
		{"POST /login", map[string]any{"email": "cyd@example.com", "password": authtest.Password, "totp_code": w.Code(cydSecond.Secret, 0)}, "", 200},
		{"POST /refresh", map[string]any{"refresh_token": ada.RefreshToken}, "", 200},
		{"GET /oauth/{provider}", nil, "", 302},
		{"POST /signup", map[string]any{"phone": "+4930333333", "password": harness.GoodPassword}, "", 200},
		{"POST /oauth/{provider}/id-token", map[string]any{"id_token": idp.IDToken("google", who("n1"), "")}, "", 200},
		{"POST /invitations/accept", map[string]any{"token": invited, "password": harness.GoodPassword}, "", 200},
		{"GET /magic-link/verify?token=" + magic[0], nil, "", 200},
		{"POST /magic-link/verify", map[string]any{"token": magic[1]}, "", 200},
		{"POST /magic-link/verify", map[string]any{"email": "m3@example.com", "code": byCode.Code, "request_id": byCode.Request}, "", 200},
		{"POST /exchange", map[string]any{"code": opened, "code_verifier": harness.Verifier}, "", 200},
		{"POST /otp/verify", map[string]any{"phone": "+4930222222", "otp": first}, "", 200},
		{"POST /magic-link/send", map[string]any{"email": "ada@example.com"}, "", 200},
		{"POST /otp/verify", map[string]any{"phone": number, "otp": code, "totp_code": w.Code(second.Secret, 0)}, "", 200},
		{"POST /otp/send", map[string]any{"phone": number}, "", 200},
		{"POST /forgot-password", map[string]any{"email": "ada@example.com"}, "", 200},
		{"POST /verify-email", nil, ben.AccessToken, 200},
		{"POST /verify-email", map[string]any{"email": "nobody@example.com", "code": "123456"}, "", 400},
		{"PATCH /me", map[string]any{"email": "ada@example.org", "phone": "+4930654321"}, ada.AccessToken, 200},
		{"POST /me/confirm", map[string]any{"password": authtest.Password}, ada.AccessToken, 200},
		{"POST /me/confirm", map[string]any{"totp_code": "000000"}, cydSecond.AccessToken, 422},
		{"POST /me/password", map[string]any{"current_password": authtest.Password, "new_password": harness.GoodPassword}, ada.AccessToken, 200},
		{"POST /me/identities/{provider}", nil, ada.AccessToken, 200},
		{"POST /2fa/verify-and-enable", map[string]any{"totp_code": w.Code(setup.Secret, 0)}, ben.AccessToken, 200},
		{"POST /2fa/verify", map[string]any{"mfa_token": mfa, "totp_code": "000000"}, "", 422},
	} {
		w.Call(step.route, step.body, step.token).Want(step.want)
		route, _, _ := strings.Cut(step.route, "?")
		covered[route] = append(covered[route], store.names(limits)...)
	}
	for route, come := range callbacks {
		come().Want(200)
		covered[route] = store.names(limits)
	}

	// A second factor that was shown long ago is switched off by another code.
	w.Clock.Advance(20 * time.Minute)
	stale := w.PostRefresh(cydSecond.RefreshToken).Session().AccessToken
	store.names(limits)
	w.Do("POST", "/2fa/disable", map[string]any{"totp_code": "000000"}, harness.Bearer(stale)).Want(422)
	covered["POST /2fa/disable"] = store.names(limits)
	for route, drawn := range covered {
		got := slices.Compact(slices.Sorted(slices.Values(drawn)))
		if want := slices.Sorted(slices.Values(table[route])); !slices.Equal(got, want) {
			t.Errorf("%s draws from %v, and the table lists %v", route, got, want)
		}
	}
	for route := range table {
		if covered[route] == nil {
			t.Errorf("%s has limits that this test does not draw from", route)
		}
	}
}

// The table in docs/settings.md is written from the declarations of the settings.
func TestSettingsPage(t *testing.T) {
	const name, begin, end = "docs/settings.md", "-update . -->\n", "<!-- /written -->"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), begin)
	was, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no place for the table", name)
	}
	is := auth.SettingsRows()
	if *harness.Update {
		if err := os.WriteFile(name, []byte(before+begin+is+end+after), 0o600); err != nil { //nolint:gosec // the name is a constant
			t.Fatal(err)
		}
	} else if was != is {
		t.Errorf("the table in %s is not that of the declarations: go test -run TestSettingsPage -update .", name)
	}
}
