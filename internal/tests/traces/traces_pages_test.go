package traces_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// A session in cookies has the effects of one in the body. Its answer is the same except for
// the tokens, which are in cookies only.
func TestTracesOfCookies(t *testing.T) {
	t.Parallel()
	for pattern, rows := range cookieRows() {
		for _, r := range rows {
			if r.Kind == harness.OnIdentity || r.Name == "on the page" {
				continue // they have their session in cookies already
			}
			t.Run(pattern+" "+title(r, ""), func(t *testing.T) {
				t.Parallel()
				w, plain := newTraceWorld(t, r, auth.WithCookies(auth.CookieOptions{})), newTraceWorld(t, r)
				w.says = []harness.Header{{Name: "X-Session-Transport", Value: "cookie"}, {Name: "Origin", Value: "https://auth.test"}, {Name: "Sec-Fetch-Site", Value: "same-origin"}}
				got, want := w.effectsOf(harness.Trial{Row: r}), plain.effectsOf(harness.Trial{Row: r})
				if harness.ResultOf(got.Answer()) != harness.ResultOf(want.Answer()) {
					t.Errorf("answers %s, and %s without cookies", harness.ResultOf(got.Answer()), harness.ResultOf(want.Answer()))
				}
				if list := append(unlike(got.all, want.all), unlike(want.all, got.all)...); len(list) > 0 {
					t.Errorf("other effects:\n%s", strings.Join(list, "\n"))
				}
				body, cookies := string(got.Answer().Body), got.Answer().Header["Set-Cookie"]
				if strings.Contains(body, `"access_token":"`) || strings.Contains(body, `"refresh_token":"`) {
					t.Errorf("a token in the body: %s", body)
				}
				if strings.Contains(string(want.Answer().Body), `"access_token":"`) && len(cookies) < 2 {
					t.Errorf("a session without cookies: %q", cookies)
				}
				for _, c := range cookies {
					if !strings.Contains(c, "; HttpOnly; Secure; SameSite=") {
						t.Errorf("a cookie for scripts, or for other sites: %s", c)
					}
				}
			})
		}
	}
}

// cookieRows are the rows that neither send a form first, which would take their session,
// nor open a link, which shows a button where there are cookies.
func cookieRows() map[string][]harness.Row {
	table := harness.HostileRows()
	maps.DeleteFunc(table, func(pattern string, _ []harness.Row) bool {
		return slices.Contains([]string{
			"GET /openapi.json", "GET /magic-link/verify", "GET /verify-email", "POST /verify-email", "POST /exchange", "POST /otp/verify", "POST /2fa/verify-and-enable", "DELETE /me/identities/{provider}",
			"GET /oauth/{provider}/callback", "POST /oauth/{provider}/callback", "POST /oauth/{provider}/id-token",
		}, pattern)
	})
	return table
}

// Pages and forms of invitations, and users from another system.
func TestTracesOfPages(t *testing.T) {
	t.Parallel()
	traceTable(t, "", pageRows(), func(t *testing.T, r harness.Row) []string {
		t.Helper()
		return append(append([]string{title(r, "")}, newTraceWorld(t, r, auth.WithCookies(auth.CookieOptions{})).trace(harness.Trial{Row: r}, time.Second).lines...), "")
	})
}

func pageRows() map[string][]harness.Row {
	return map[string][]harness.Row{"page invitation": invitationRows(), "page import": importRows()}
}

// invitedTo sends an edited invitation as the admin side does.
func invitedTo(s *harness.Scene, email string, edit func(*host.Invitation)) string {
	s.T.Helper()
	kit, ctx := host.Of(s), s.T.Context()
	s.Invited(email) // sets the check of invitations
	inv := host.Invitation{Email: email, Roles: []string{"editor"}, Metadata: map[string]any{"team": "a"}, By: auth.Actor{Kind: store.ActorSystem, ID: "test"}}
	edit(&inv)
	inv, err := kit.CheckInvitation(inv, 0)
	if err != nil {
		s.T.Fatal(err)
	}
	_, seen, _, err := kit.Invitations(ctx, inv.ID, nil, 1)
	if err != nil {
		s.T.Fatal(err)
	}
	c := kit.Change(ctx, harness.ByOperator())
	if err := kit.Invite(ctx, &c, &host.Send{}, inv, seen[0]); err != nil {
		s.T.Fatal(err)
	}
	kit.Committed(ctx, c, nil)
	return s.LinkToken(email, auth.KindInvitation)
}

// comings are who an invitation is to, and who comes.
type coming struct {
	name   string
	kind   harness.Kind
	to     func(s *harness.Scene) string
	signed bool
}

func invitationRows() (rows []harness.Row) {
	own, other := func(s *harness.Scene) string { return s.Email }, func(s *harness.Scene) string { return s.EvilMail }
	for _, c := range []coming{
		{"a new one", harness.OnStolen, other, false},
		{"a new one while signed in", harness.OnStolen, other, true},
		{"an owner", harness.OnStolen, own, false},
		{"an owner who is signed in", harness.OnStolen, own, true},
		{"a squatter", harness.OnAddress, own, false},
		{"a squatter who is signed in", harness.OnAddress, own, true},
		{"a lookalike", harness.OnIdentity, own, false},
	} {
		for name, to := range map[string]string{"": "", ", and back": harness.AppURL + "in"} {
			if to != "" && c.name != "a new one" {
				continue
			}
			row := func(what string, do func(s *harness.Scene, token string, headers ...harness.Header) *harness.Answer) {
				rows = append(rows, harness.Row{Name: c.name + name + " " + what, Kind: c.kind, Prepare: func(s *harness.Scene) func() *harness.Answer {
					token := invitedTo(s, c.to(s), func(inv *host.Invitation) { inv.RedirectTo = to })
					var headers []harness.Header
					if c.signed {
						headers = append(headers, s.Authorization())
					}
					return func() *harness.Answer { return do(s, token, headers...) }
				}})
			}
			post := func(fields url.Values) func(s *harness.Scene, token string, headers ...harness.Header) *harness.Answer {
				return func(s *harness.Scene, token string, headers ...harness.Header) *harness.Answer {
					fields.Set("token", token)
					return s.Evil.Send("POST", "/invitations/accept", fields.Encode(), append([]harness.Header{harness.Form}, headers...)...)
				}
			}
			row("gets the page", func(s *harness.Scene, token string, headers ...harness.Header) *harness.Answer {
				return s.Evil.Send("GET", "/invitations/accept?token="+token, nil, append(headers, harness.Header{Name: "Accept", Value: "text/html"}, harness.Header{Name: "Sec-Fetch-Mode", Value: "navigate"})...)
			})
			row("asks", func(s *harness.Scene, token string, headers ...harness.Header) *harness.Answer {
				return s.Evil.Send("GET", "/invitations/accept?token="+token, nil, append(headers, harness.Header{Name: "Accept", Value: "application/json"})...)
			})
			row("sends the form", post(url.Values{"password": {harness.EvilPassword}}))
			row("posts", func(s *harness.Scene, token string, headers ...harness.Header) *harness.Answer {
				return s.Evil.Send("POST", "/invitations/accept", map[string]any{"token": token, "password": harness.EvilPassword, "full_name": "Eve"}, headers...)
			})
			if to != "" || c.name != "a new one" {
				continue
			}
			row("sends the form with a weak password", post(url.Values{"password": {"weak"}}))
			row("sends the form without a password", post(url.Values{}))
			row("sends a form of two tokens", func(s *harness.Scene, token string, headers ...harness.Header) *harness.Answer {
				return s.Evil.Send("POST", "/invitations/accept", "token="+token+"&token="+token, append([]harness.Header{harness.Form}, headers...)...)
			})
			row("sends the form with a bad token", func(s *harness.Scene, token string, _ ...harness.Header) *harness.Answer {
				return s.Evil.Send("POST", "/invitations/accept", url.Values{"token": {token}, "password": {harness.EvilPassword}}.Encode(), harness.Form, harness.Bearer("x"))
			})
			row("posts with a bad token", func(s *harness.Scene, token string, _ ...harness.Header) *harness.Answer {
				return s.Evil.Send("POST", "/invitations/accept", map[string]any{"token": token, "password": harness.EvilPassword}, harness.Bearer("x"))
			})
		}
	}
	return append(rows, invitedByProvider()...)
}

// invitedByProvider are acceptances by a sign-in at a provider.
func invitedByProvider() (rows []harness.Row) {
	for name, edit := range map[string]func(s *harness.Scene){
		"by the address":                func(s *harness.Scene) { s.Git.Email, s.Git.EmailVerified = s.EvilMail, true },
		"by the address, not proved":    func(s *harness.Scene) { s.Git.Email, s.Git.EmailVerified = s.EvilMail, false },
		"by another address":            func(s *harness.Scene) { s.Git.Email, s.Git.EmailVerified = "more-"+s.EvilMail, true },
		"by an account's other address": func(s *harness.Scene) { s.Git.Email, s.Git.EmailVerified = s.Email, true },
	} {
		rows = append(rows, harness.Row{Name: "accepts at a provider " + name, Kind: harness.OnStolen, Prepare: func(s *harness.Scene) func() *harness.Answer {
			edit(s)
			token := invitedTo(s, s.EvilMail, func(*host.Invitation) {})
			return s.Evil.Back("google", s.Evil.Begin("google", url.Values{"invitation": {token}, "redirect_to": {harness.AppURL}, "code_challenge": {harness.ChallengeOf(harness.Verifier)}}.Encode()), s.Git)
		}})
	}
	return append(rows, harness.Row{Name: "accepts an account's at a provider", Kind: harness.OnStolen, Prepare: func(s *harness.Scene) func() *harness.Answer {
		token := invitedTo(s, s.Email, func(*host.Invitation) {})
		return s.Evil.Back("google", s.Evil.Begin("google", url.Values{"invitation": {token}, "redirect_to": {harness.AppURL}, "code_challenge": {harness.ChallengeOf(harness.Verifier)}}.Encode()), s.Ada)
	}})
}

func importRows() (rows []harness.Row) {
	for name, edit := range map[string]func(s *harness.Scene, p *auth.ImportUserParams){
		"one": func(*harness.Scene, *auth.ImportUserParams) {},
		"one whole": func(s *harness.Scene, p *auth.ImportUserParams) {
			past := s.Clock.Now().Add(-time.Hour)
			p.ID, p.Phone, p.PhoneVerifiedAt, p.EmailVerifiedAt, p.FullName = fmt.Sprintf("00000000-0000-7000-8000-%012d", s.Scenes), s.EvilNumber, past, past.Add(time.Minute), "Eve"
			p.TOTPSecret, p.Roles, p.CreatedAt, p.LastSignInAt, p.BannedUntil = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP", []string{"b", "a"}, past.Add(-time.Hour), past, past.Add(2*time.Hour)
			p.UserMetadata, p.AppMetadata, p.PasswordHash = map[string]any{"a": 1}, map[string]any{"b": 2}, harness.BcryptHash
			p.Identities = []auth.Identity{{Provider: "google", Subject: "9", Email: s.EvilMail, CreatedAt: past}, {Provider: "github", Subject: "9"}}
		},
		"one banned for ever": func(_ *harness.Scene, p *auth.ImportUserParams) {
			p.BannedUntil = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
		},
		"one banned until nobody's are": func(_ *harness.Scene, p *auth.ImportUserParams) {
			p.BannedUntil = time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)
		},
		"one banned for longer": func(_ *harness.Scene, p *auth.ImportUserParams) {
			p.BannedUntil = time.Date(10000, 6, 1, 0, 0, 0, 0, time.UTC)
		},
		"one of a later time":    func(s *harness.Scene, p *auth.ImportUserParams) { p.CreatedAt = s.Clock.Now().Add(time.Hour) },
		"one seen before":        func(s *harness.Scene, p *auth.ImportUserParams) { p.LastSignInAt = s.Clock.Now().Add(-1e6 * time.Hour) },
		"one without an address": func(_ *harness.Scene, p *auth.ImportUserParams) { p.Email = "" },
		"one of a bad address":   func(_ *harness.Scene, p *auth.ImportUserParams) { p.Email = "nobody" },
		"one of a bad number":    func(_ *harness.Scene, p *auth.ImportUserParams) { p.Phone = "1" },
		"one of a bad id":        func(_ *harness.Scene, p *auth.ImportUserParams) { p.ID = "1" },
		"one of the id of zeros": func(_ *harness.Scene, p *auth.ImportUserParams) { p.ID = "00000000-0000-0000-0000-000000000000" },
		"one of a bad hash":      func(_ *harness.Scene, p *auth.ImportUserParams) { p.PasswordHash = "hash" },
		"one of a short secret":  func(_ *harness.Scene, p *auth.ImportUserParams) { p.TOTPSecret = "JBSWY3DP" },
		"one of a bad secret":    func(_ *harness.Scene, p *auth.ImportUserParams) { p.TOTPSecret = "1" },
		"one of a bad role":      func(_ *harness.Scene, p *auth.ImportUserParams) { p.Roles = []string{"a b"} },
		"one of a long name":     func(_ *harness.Scene, p *auth.ImportUserParams) { p.FullName = strings.Repeat("n", 1000) },
		"one of two identities at one": func(_ *harness.Scene, p *auth.ImportUserParams) {
			p.Identities = []auth.Identity{{Provider: "google", Subject: "1"}, {Provider: "google", Subject: "2"}}
		},
		"one of an identity of nobody":  func(_ *harness.Scene, p *auth.ImportUserParams) { p.Identities = []auth.Identity{{Provider: "google"}} },
		"one of an identity of nowhere": func(_ *harness.Scene, p *auth.ImportUserParams) { p.Identities = []auth.Identity{{Subject: "1"}} },
		"one of too much metadata": func(_ *harness.Scene, p *auth.ImportUserParams) {
			p.UserMetadata = map[string]any{"a": strings.Repeat("n", 64<<10)}
		},
		"one of too much app metadata": func(_ *harness.Scene, p *auth.ImportUserParams) {
			p.AppMetadata = map[string]any{"a": strings.Repeat("n", 64<<10)}
		},
		"one verified without an address": func(s *harness.Scene, p *auth.ImportUserParams) {
			p.Email, p.Phone, p.EmailVerified = "", s.EvilNumber, true
		},
		"one verified without a number": func(_ *harness.Scene, p *auth.ImportUserParams) { p.PhoneVerified = true },
		"one of a taken address":        func(s *harness.Scene, p *auth.ImportUserParams) { p.Email = s.Email },
	} {
		rows = append(rows, harness.Row{Name: "imports " + name, Kind: harness.OnStolen, Prepare: func(s *harness.Scene) func() *harness.Answer {
			p := auth.ImportUserParams{Email: s.EvilMail}
			edit(s, &p)
			return func() *harness.Answer {
				u, err := s.ImportUser(s.T.Context(), p)
				return returned(s.T, u, err)
			}
		}})
	}
	return rows
}

// An invalid body of a route is refused as recorded, signed in or not.
func TestTracesOfOddBodies(t *testing.T) {
	t.Parallel()
	w := newTraceWorld(t, harness.Row{})
	s := w.NewScene(harness.Row{Kind: harness.OnStolen})
	bodies := map[string]harness.Header{
		"{": {Name: "Content-Type", Value: "application/json"}, "[]": {Name: "Content-Type", Value: "application/json"}, "null": {Name: "Content-Type", Value: "application/json"}, `{"nothing":1}`: {Name: "Content-Type", Value: "application/json"},
		"": {Name: "Content-Type", Value: "application/json"}, "{}": {Name: "Content-Type", Value: "application/json"}, " {}": {Name: "Content-Type", Value: "text/plain"}, `{} {}`: {Name: "Content-Type", Value: "application/json"},
		"%zz": harness.Form, "a=1&a=2": harness.Form, "token=1&token=2": harness.Form, "token=x": harness.Form, "password=x&remember=maybe": harness.Form,
	}
	var lines []string
	tr := &tracing{words: &words{names: map[string]string{}}}
	for _, pattern := range slices.Sorted(maps.Keys(harness.HostileRows())) {
		method, path, _ := strings.Cut(pattern, " ")
		if method == "GET" || pattern == "DELETE /me" || strings.HasPrefix(pattern, "DELETE /sessions") || pattern == "POST /logout" {
			continue // nothing is wrong with another body than none
		}
		lines = append(lines, "# "+pattern)
		for _, body := range slices.Sorted(maps.Keys(bodies)) {
			var said []string
			for _, in := range [][]harness.Header{{bodies[body]}, {bodies[body], s.Authorization()}} {
				a := s.NewPerson(t.Context()).Send(method, strings.NewReplacer("{provider}", "google", "{id}", "1").Replace(path), body, in...)
				said = append(said, harness.CodeOf(a)+" "+fieldsOf(a))
			}
			lines = append(lines, fmt.Sprint(tr.text(fmt.Sprintf("%q: %s; signed in: %s", body, said[0], said[1]))))
		}
		lines = append(lines, "")
	}
	compareTrace(t, "odd bodies", lines)
}

func fieldsOf(a *harness.Answer) string {
	var e struct{ Fields map[string]string }
	_ = json.Unmarshal(a.Body, &e) // pages have none
	raw, _ := json.Marshal(e.Fields)
	return string(raw)
}
