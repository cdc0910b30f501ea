package auth_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// Where a script asks for its session in cookies, it is in cookies, and not in the body.
func TestTracesOfCookies(t *testing.T) {
	t.Parallel()
	if os.Getenv(onPostgres) != "" {
		return
	}
	traceTable(t, "cookie ", cookieRows(), func(t *testing.T, r row) []string {
		t.Helper()
		w := newTraceWorld(t, r, auth.WithCookies(auth.CookieOptions{}))
		w.says = []header{{"X-Session-Transport", "cookie"}, {"Origin", "https://auth.test"}, {"Sec-Fetch-Site", "same-origin"}}
		tr := w.trace(trial{row: r}, time.Second)
		return append(append([]string{title(r, "")}, tr.lines...), "")
	})
}

// cookieRows are those that do not send a form first, which would take their session.
func cookieRows() map[string][]row {
	table := hostileRows()
	maps.DeleteFunc(table, func(pattern string, _ []row) bool {
		return slices.Contains([]string{
			"GET /verify-email", "POST /verify-email", "POST /exchange", "POST /otp/verify", "POST /2fa/verify-and-enable", "DELETE /me/identities/{provider}",
			"GET /oauth/{provider}/callback", "POST /oauth/{provider}/callback", "POST /oauth/{provider}/id-token",
		}, pattern)
	})
	return table
}

// Pages and forms of invitations, and users from another system.
func TestTracesOfPages(t *testing.T) {
	t.Parallel()
	if os.Getenv(onPostgres) != "" {
		return
	}
	traceTable(t, "", pageRows(), func(t *testing.T, r row) (lines []string) {
		t.Helper()
		tr := newTraceWorld(t, r).trace(trial{row: r}, time.Second)
		lines = append(append([]string{title(r, "")}, tr.lines...), "")
		if !strings.HasPrefix(r.name, "imports") {
			tr := newTraceWorld(t, r, auth.WithCookies(auth.CookieOptions{})).trace(trial{row: r}, time.Second)
			lines = append(lines, append(append([]string{title(r, "") + ", with cookies"}, tr.lines...), "")...)
		}
		if strings.Contains(r.name, "form") || strings.Contains(r.name, "bad") || r.kind != onStolen {
			return lines
		}
		return append(append(lines, outages(t, r)...), "")
	})
}

func pageRows() map[string][]row {
	return map[string][]row{"page invitation": invitationRows(), "page import": importRows()}
}

// invitedTo invites somebody as the admin side does, to what is edited.
func (s *scene) invitedTo(email string, edit func(*host.Invitation)) string {
	s.t.Helper()
	kit, ctx := host.Of(s), s.t.Context()
	s.invited(email) // has them judged
	inv := host.Invitation{Email: email, Roles: []string{"editor"}, Metadata: map[string]any{"team": "a"}, By: auth.Actor{Kind: store.ActorSystem, ID: "test"}}
	edit(&inv)
	inv, err := kit.CleanInvitation(inv, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	_, seen, _, err := kit.Invitations(ctx, inv.ID, nil, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	c := kit.Change(ctx, byOperator())
	if err := kit.Invite(ctx, &c, &host.Send{}, inv, seen[0]); err != nil {
		s.t.Fatal(err)
	}
	kit.Committed(ctx, c, nil)
	return s.linkToken(email, auth.KindInvitation)
}

// comings are who an invitation is to, and who comes.
type coming struct {
	name   string
	kind   kind
	to     func(s *scene) string
	signed bool
}

func invitationRows() (rows []row) {
	own, other := func(s *scene) string { return s.email }, func(s *scene) string { return s.evilMail }
	for _, c := range []coming{
		{"a new one", onStolen, other, false},
		{"a new one while signed in", onStolen, other, true},
		{"an owner", onStolen, own, false},
		{"an owner who is signed in", onStolen, own, true},
		{"a squatter", onAddress, own, false},
		{"a squatter who is signed in", onAddress, own, true},
		{"a lookalike", onIdentity, own, false},
	} {
		for name, to := range map[string]string{"": "", ", and back": appURL + "in"} {
			if to != "" && c.kind != onStolen {
				continue
			}
			row := func(what string, do func(s *scene, token string, headers ...header) *answer) {
				rows = append(rows, row{name: c.name + name + " " + what, kind: c.kind, prepare: func(s *scene) func() *answer {
					token := s.invitedTo(c.to(s), func(inv *host.Invitation) { inv.RedirectTo = to })
					var headers []header
					if c.signed {
						headers = append(headers, s.in())
					}
					return func() *answer { return do(s, token, headers...) }
				}})
			}
			post := func(fields url.Values) func(s *scene, token string, headers ...header) *answer {
				return func(s *scene, token string, headers ...header) *answer {
					fields.Set("token", token)
					return s.evil.send("POST", "/invitations/accept", fields.Encode(), append([]header{form}, headers...)...)
				}
			}
			row("gets the page", func(s *scene, token string, headers ...header) *answer {
				return s.evil.send("GET", "/invitations/accept?token="+token, nil, append(headers, header{"Accept", "text/html"}, header{"Sec-Fetch-Mode", "navigate"})...)
			})
			row("asks", func(s *scene, token string, headers ...header) *answer {
				return s.evil.send("GET", "/invitations/accept?token="+token, nil, append(headers, header{"Accept", "application/json"})...)
			})
			row("sends the form", post(url.Values{"password": {evilPassword}}))
			row("posts", func(s *scene, token string, headers ...header) *answer {
				return s.evil.send("POST", "/invitations/accept", map[string]any{"token": token, "password": evilPassword, "full_name": "Eve"}, headers...)
			})
			if to != "" {
				continue
			}
			row("sends the form with a weak password", post(url.Values{"password": {"weak"}}))
			row("sends the form without a password", post(url.Values{}))
			row("sends a form of two tokens", func(s *scene, token string, headers ...header) *answer {
				return s.evil.send("POST", "/invitations/accept", "token="+token+"&token="+token, append([]header{form}, headers...)...)
			})
			row("sends the form with a bad token", func(s *scene, token string, _ ...header) *answer {
				return s.evil.send("POST", "/invitations/accept", url.Values{"token": {token}, "password": {evilPassword}}.Encode(), form, bearer("x"))
			})
			row("posts with a bad token", func(s *scene, token string, _ ...header) *answer {
				return s.evil.send("POST", "/invitations/accept", map[string]any{"token": token, "password": evilPassword}, bearer("x"))
			})
		}
	}
	return append(rows, invitedByProvider()...)
}

// invitedByProvider are acceptances by a sign-in at a provider.
func invitedByProvider() (rows []row) {
	for name, edit := range map[string]func(s *scene){
		"by the address":                func(s *scene) { s.git.Email, s.git.EmailVerified = s.evilMail, true },
		"by the address, not proved":    func(s *scene) { s.git.Email, s.git.EmailVerified = s.evilMail, false },
		"by another address":            func(s *scene) { s.git.Email, s.git.EmailVerified = "more-"+s.evilMail, true },
		"by an account's other address": func(s *scene) { s.git.Email, s.git.EmailVerified = s.email, true },
	} {
		rows = append(rows, row{name: "accepts at a provider " + name, kind: onStolen, prepare: func(s *scene) func() *answer {
			edit(s)
			token := s.invitedTo(s.evilMail, func(*host.Invitation) {})
			return s.evil.back("google", s.evil.begin("google", url.Values{"invitation": {token}, "redirect_to": {appURL}, "code_challenge": {challengeOf(verifier)}}.Encode()), s.git)
		}})
	}
	return append(rows, row{name: "accepts an account's at a provider", kind: onStolen, prepare: func(s *scene) func() *answer {
		token := s.invitedTo(s.email, func(*host.Invitation) {})
		return s.evil.back("google", s.evil.begin("google", url.Values{"invitation": {token}, "redirect_to": {appURL}, "code_challenge": {challengeOf(verifier)}}.Encode()), s.ada)
	}})
}

func importRows() (rows []row) {
	for name, edit := range map[string]func(s *scene, p *auth.ImportUserParams){
		"one": func(*scene, *auth.ImportUserParams) {},
		"one whole": func(s *scene, p *auth.ImportUserParams) {
			past := s.Clock.Now().Add(-time.Hour)
			p.ID, p.Phone, p.PhoneVerifiedAt, p.EmailVerifiedAt, p.FullName = fmt.Sprintf("00000000-0000-7000-8000-%012d", s.scenes), s.evilNumber, past, past.Add(time.Minute), "Eve"
			p.TOTPSecret, p.Roles, p.CreatedAt, p.LastSignInAt, p.BannedUntil = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP", []string{"b", "a"}, past.Add(-time.Hour), past, past.Add(2*time.Hour)
			p.UserMetadata, p.AppMetadata, p.PasswordHash = map[string]any{"a": 1}, map[string]any{"b": 2}, bcryptHash
			p.Identities = []auth.Identity{{Provider: "google", Subject: "9", Email: s.evilMail, CreatedAt: past}, {Provider: "github", Subject: "9"}}
		},
		"one banned for ever": func(_ *scene, p *auth.ImportUserParams) {
			p.BannedUntil = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
		},
		"one banned until nobody's are": func(_ *scene, p *auth.ImportUserParams) {
			p.BannedUntil = time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)
		},
		"one banned for longer":  func(_ *scene, p *auth.ImportUserParams) { p.BannedUntil = time.Date(10000, 6, 1, 0, 0, 0, 0, time.UTC) },
		"one of a later time":    func(s *scene, p *auth.ImportUserParams) { p.CreatedAt = s.Clock.Now().Add(time.Hour) },
		"one seen before":        func(s *scene, p *auth.ImportUserParams) { p.LastSignInAt = s.Clock.Now().Add(-1e6 * time.Hour) },
		"one without an address": func(_ *scene, p *auth.ImportUserParams) { p.Email = "" },
		"one of a bad address":   func(_ *scene, p *auth.ImportUserParams) { p.Email = "nobody" },
		"one of a bad number":    func(_ *scene, p *auth.ImportUserParams) { p.Phone = "1" },
		"one of a bad id":        func(_ *scene, p *auth.ImportUserParams) { p.ID = "1" },
		"one of the id of zeros": func(_ *scene, p *auth.ImportUserParams) { p.ID = "00000000-0000-0000-0000-000000000000" },
		"one of a bad hash":      func(_ *scene, p *auth.ImportUserParams) { p.PasswordHash = "hash" },
		"one of a short secret":  func(_ *scene, p *auth.ImportUserParams) { p.TOTPSecret = "JBSWY3DP" },
		"one of a bad secret":    func(_ *scene, p *auth.ImportUserParams) { p.TOTPSecret = "1" },
		"one of a bad role":      func(_ *scene, p *auth.ImportUserParams) { p.Roles = []string{"a b"} },
		"one of a long name":     func(_ *scene, p *auth.ImportUserParams) { p.FullName = strings.Repeat("n", 1000) },
		"one of two identities at one": func(_ *scene, p *auth.ImportUserParams) {
			p.Identities = []auth.Identity{{Provider: "google", Subject: "1"}, {Provider: "google", Subject: "2"}}
		},
		"one of an identity of nobody":  func(_ *scene, p *auth.ImportUserParams) { p.Identities = []auth.Identity{{Provider: "google"}} },
		"one of an identity of nowhere": func(_ *scene, p *auth.ImportUserParams) { p.Identities = []auth.Identity{{Subject: "1"}} },
		"one of too much metadata": func(_ *scene, p *auth.ImportUserParams) {
			p.UserMetadata = map[string]any{"a": strings.Repeat("n", 64<<10)}
		},
		"one of too much app metadata": func(_ *scene, p *auth.ImportUserParams) {
			p.AppMetadata = map[string]any{"a": strings.Repeat("n", 64<<10)}
		},
		"one verified without an address": func(s *scene, p *auth.ImportUserParams) { p.Email, p.Phone, p.EmailVerified = "", s.evilNumber, true },
		"one verified without a number":   func(_ *scene, p *auth.ImportUserParams) { p.PhoneVerified = true },
		"one of a taken address":          func(s *scene, p *auth.ImportUserParams) { p.Email = s.email },
	} {
		rows = append(rows, row{name: "imports " + name, kind: onStolen, prepare: func(s *scene) func() *answer {
			p := auth.ImportUserParams{Email: s.evilMail}
			edit(s, &p)
			return func() *answer {
				u, err := s.ImportUser(s.t.Context(), p)
				return returned(s.t, u, err)
			}
		}})
	}
	return rows
}

// What is no body of a route is refused as it is written down, signed in or not.
func TestTracesOfOddBodies(t *testing.T) {
	t.Parallel()
	if os.Getenv(onPostgres) != "" {
		return
	}
	w := newTraceWorld(t, row{})
	s := w.scene(row{kind: onStolen})
	bodies := map[string]header{
		"{": {"Content-Type", "application/json"}, "[]": {"Content-Type", "application/json"}, "null": {"Content-Type", "application/json"}, `{"nothing":1}`: {"Content-Type", "application/json"},
		"": {"Content-Type", "application/json"}, "{}": {"Content-Type", "application/json"}, " {}": {"Content-Type", "text/plain"}, `{} {}`: {"Content-Type", "application/json"},
		"%zz": form, "a=1&a=2": form, "token=1&token=2": form, "token=x": form, "password=x&remember=maybe": form,
	}
	var lines []string
	tr := &tracing{words: &words{names: map[string]string{}}}
	for _, pattern := range slices.Sorted(maps.Keys(hostileRows())) {
		method, path, _ := strings.Cut(pattern, " ")
		if method == "GET" || pattern == "DELETE /me" || strings.HasPrefix(pattern, "DELETE /sessions") || pattern == "POST /logout" {
			continue // nothing is wrong with another body than none
		}
		lines = append(lines, "# "+pattern)
		for _, body := range slices.Sorted(maps.Keys(bodies)) {
			var said []string
			for _, in := range [][]header{{bodies[body]}, {bodies[body], s.in()}} {
				a := s.person(t.Context()).send(method, strings.NewReplacer("{provider}", "google", "{id}", "1").Replace(path), body, in...)
				said = append(said, codeOf(a)+" "+fieldsOf(a))
			}
			lines = append(lines, fmt.Sprint(tr.text(fmt.Sprintf("%q: %s; signed in: %s", body, said[0], said[1]))))
		}
		lines = append(lines, "")
	}
	compareTrace(t, "odd bodies", lines)
}

func fieldsOf(a *answer) string {
	var e struct{ Fields map[string]string }
	_ = json.Unmarshal(a.body, &e) // pages have none
	raw, _ := json.Marshal(e.Fields)
	return string(raw)
}
