package auth_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

func kitRestRows() map[string][]row {
	return map[string][]row{
		"kit settings": kitSettings(), "kit tries": kitTries(), "kit first owner": kitFirstOwner(), "kit impersonation": kitImpersonation(),
	}
}

func kitSettings() (rows []row) {
	edit := func(name string, stored string, changes map[string]string) row {
		return plainly(name, onStolen, func(_ context.Context, s *scene, kit host.Kit) (any, error) {
			raw := map[string]json.RawMessage{}
			for k, v := range changes {
				raw[k] = json.RawMessage(v)
			}
			e, err := kit.EditSettings(store.StoredSettings{Document: []byte(stored)}, raw)
			if err != nil {
				return nil, err
			}
			lets := map[string]any{}
			for name, c := range map[string]store.Credentials{
				"password": {User: s.user(), PasswordHash: bcryptHash}, "address": {User: s.user()}, "nothing": {}, "factor": {User: auth.User{Email: s.email, EmailVerifiedAt: s.Clock.Now(), MFAEnabled: true}}, "number": {User: auth.User{Phone: s.number, PhoneVerifiedAt: s.Clock.Now()}},
				"identity": {User: auth.User{Identities: []auth.Identity{{Provider: "google", Subject: "1"}}}},
			} {
				for factor, with := range map[string]bool{"": false, " and factor": true} {
					before, after := kit.LetsIn(e, c, with)
					lets[name+factor] = []bool{before, after}
				}
			}
			is, err := kit.Settings(store.StoredSettings{Document: e.Document})
			return map[string]any{"document": json.RawMessage(e.Document), "changes": e.Changes, "lets_in": lets, "settings": is}, err
		})
	}
	rows = append(rows,
		edit("by nothing", "", nil),
		edit("taken back", `{"signup_enabled":false}`, map[string]string{"signup_enabled": "null"}),
		edit("of no document", `[]`, nil),
		edit("of one that there is not", "", map[string]string{"nothing": "true"}),
		edit("of several", `{"signup_enabled":false}`, map[string]string{"password_min_length": "12", "texts": `{"footer":"hello"}`}),
		edit("to the same", `{"signup_enabled":false}`, map[string]string{"signup_enabled": "false"}),
	)
	for name, values := range map[string][]string{
		"enabled": {"false"}, "signup_enabled": {"false"}, "email_confirmation_required": {"true"}, "password_enabled": {"false"}, "magic_link_enabled": {"false"}, "phone_enabled": {"false"},
		"oauth_enabled": {"false"}, "totp_enabled": {"false"}, "mfa_required": {"true"}, "mfa_required_for": {`["editor"]`, `["a b"]`}, "account_deletion": {"false"}, "auto_linking": {"false"},
		"password_min_length": {"7", "8", "256", "257"}, "password_breach_check": {"true"}, "session_idle_timeout": {"60", "1", "-1"}, "session_lifetime": {"86400", "1"},
		"redirect_urls": {`["https://more.test/"]`, `["nothing"]`}, "cors_origins": {`["https://more.test"]`}, "sender_name": {`"Acme"`, `""`, `"` + strings.Repeat("n", 64) + `"`, `"` + strings.Repeat("n", 65) + `"`, `"` + strings.Repeat("n", 300) + `"`}, "texts": {`{"nothing":"x"}`},
	} {
		for _, value := range slices.Concat(values, []string{`{}`, `"x`}) {
			rows = append(rows, edit(name+" to "+value[:min(len(value), 70)], "", map[string]string{name: value}))
		}
	}
	return append(rows, kitRow("are read", onStolen, func(s *scene, kit host.Kit) asking {
		st, _ := store.Capability[store.SettingsStore](s.tap.Inner())
		if _, err := st.PutSettings(s.t.Context(), store.PutSettings{Change: kit.Change(s.t.Context(), byOperator()), Document: []byte(`{"sender_name":"Acme"}`)}); err != nil {
			s.t.Fatal(err)
		}
		return func(ctx context.Context) (any, error) {
			kit.ReadSettings(ctx)
			revision, at := kit.SettingsRead()
			return map[string]any{"revision": revision > 0, "read": !at.IsZero(), "name": kit.Site().App}, nil
		}
	}))
}

func kitTries() (rows []row) {
	for _, by := range []auth.Channel{auth.ChannelEmail, auth.ChannelSMS} {
		for name, edit := range map[string]func(s *scene) store.UserPatch{
			"to what is there": func(*scene) store.UserPatch { return store.UserPatch{} },
			"to a number":      func(s *scene) store.UserPatch { return store.UserPatch{Phone: &s.number} },
			"to a proved number": func(s *scene) store.UserPatch {
				now := s.Clock.Now()
				return store.UserPatch{Phone: &s.number, PhoneVerifiedAt: &now}
			},
		} {
			for _, k := range []kind{onAddress, onStolen} {
				rows = append(rows, kitRow(string(by)+" "+name, k, func(s *scene, kit host.Kit) asking {
					s.patch(s.id, edit(s))
					return func(ctx context.Context) (any, error) {
						test, err := kit.DrawTest(ctx, s.user(), by)
						if err != nil {
							return nil, err
						}
						c := kit.Change(ctx, byOperator())
						test.Enclose(ctx, &c)
						defer test.Forget()
						if err := kit.Store().PutToken(ctx, store.PutToken{Change: c, Token: store.Token{Hash: []byte("test" + s.id), Purpose: store.PurposeExchange, Subject: s.id, CreatedAt: c.Now, ExpiresAt: c.Now.Add(time.Minute)}}); err != nil {
							return nil, err
						}
						kit.Committed(ctx, c, nil)
						done, err := test.Wait(ctx)
						return done, err
					}
				}))
			}
		}
	}
	return append(rows,
		plainly("tells how it is", onStolen, func(ctx context.Context, _ *scene, kit host.Kit) (any, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
			if err != nil {
				return nil, err
			}
			r.RemoteAddr = "192.0.2.7:1234"
			r.Header.Set("X-Forwarded-For", "192.0.2.8")
			d, err := kit.Diagnose(kit.Seen(r))
			d.Store.Response, d.Store.Ahead, d.Store.Now = 0, nil, nil // by a clock of its own
			if d.Settings.ReadAt != nil {
				d.Settings.ReadAt = &time.Time{}
			}
			return d, err
		}),
		plainly("tells what is written", onStolen, func(ctx context.Context, _ *scene, kit host.Kit) (any, error) {
			kit.Emit(ctx, byOperator(), auth.Event{Type: auth.EventAdminDenied, UserID: "user", Record: &store.Record{Operation: "op", Denied: true}})
			return kit.EventsLost(), kit.Written(ctx)
		}),
	)
}

// room has a person's requests go to a room's endpoints.
func (p *person) room(routes []host.Route) {
	p.handler = host.Of(p.s).Handler("/admin", routes)
}

// kitRequest is a request to a room.
func kitRequest(name string, k kind, prepare func(s *scene, kit host.Kit) func() *answer) row {
	return row{name: name, kind: k, prepare: func(s *scene) func() *answer { return prepare(s, host.Of(s)) }}
}

func kitFirstOwner() []row {
	of := func(name string, k kind, do func(s *scene, token string) *answer) row {
		return kitRequest(name, k, func(s *scene, kit host.Kit) func() *answer {
			ctx := s.t.Context()
			link, err := kit.PutFirstOwnerLink(ctx, kit.Change(ctx, byOperator()))
			if err != nil { // somebody became it in an earlier trial
				return func() *answer { return returned(s.t, nil, err) }
			}
			to, err := url.Parse(link)
			if err != nil {
				s.t.Fatal(err)
			}
			s.evil.room(kit.FirstOwnerRoutes())
			return func() *answer { return do(s, to.Query().Get("token")) }
		})
	}
	inForm := func(fields url.Values) string { return fields.Encode() }
	rows := []row{
		of("gets the page", onStolen, func(s *scene, token string) *answer {
			return s.evil.send("GET", "/admin/first-owner?token="+token, nil, s.in())
		}),
		of("gets the page, signed out", onStolen, func(s *scene, token string) *answer {
			return s.evil.send("GET", "/admin/first-owner?token="+token, nil)
		}),
		of("gets the page by no link", onStolen, func(s *scene, _ string) *answer { return s.evil.send("GET", "/admin/first-owner?token=x", nil, s.in()) }),
		of("posts", onStolen, func(s *scene, token string) *answer {
			return s.evil.send("POST", "/admin/first-owner", map[string]any{"token": token}, s.in())
		}),
		of("posts", onAddress, func(s *scene, token string) *answer {
			return s.evil.send("POST", "/admin/first-owner", map[string]any{"token": token}, s.in())
		}),
		of("posts nothing", onStolen, func(s *scene, _ string) *answer {
			return s.evil.send("POST", "/admin/first-owner", map[string]any{}, s.in())
		}),
		of("posts no JSON", onStolen, func(s *scene, _ string) *answer { return s.evil.send("POST", "/admin/first-owner", "{", s.in()) }),
		of("posts another link", onStolen, func(s *scene, _ string) *answer {
			return s.evil.send("POST", "/admin/first-owner", map[string]any{"token": "x"}, s.in())
		}),
		of("posts, signed out", onStolen, func(s *scene, token string) *answer {
			return s.evil.send("POST", "/admin/first-owner", map[string]any{"token": token})
		}),
		of("sends the form", onStolen, func(s *scene, token string) *answer {
			return s.evil.send("POST", "/admin/first-owner", inForm(url.Values{"token": {token}}), form, s.in())
		}),
		of("sends the form", onAddress, func(s *scene, token string) *answer {
			return s.evil.send("POST", "/admin/first-owner", inForm(url.Values{"token": {token}}), form, s.in())
		}),
		of("sends the form, signed out", onStolen, func(s *scene, token string) *answer {
			return s.evil.send("POST", "/admin/first-owner", inForm(url.Values{"token": {token}}), form)
		}),
		of("sends the form with a bad token", onStolen, func(s *scene, token string) *answer {
			return s.evil.send("POST", "/admin/first-owner", inForm(url.Values{"token": {token}}), form, bearer("x"))
		}),
		of("sends the form twice", onStolen, func(s *scene, token string) *answer {
			s.evil.send("POST", "/admin/first-owner", inForm(url.Values{"token": {token}}), form, s.in())
			return s.evil.send("POST", "/admin/first-owner", inForm(url.Values{"token": {token}}), form, s.in())
		}),
		of("sends a form of two tokens", onStolen, func(s *scene, token string) *answer {
			return s.evil.send("POST", "/admin/first-owner", "token="+token+"&token="+token, form, s.in())
		}),
	}
	return append(rows, plainly("is made", onStolen, func(ctx context.Context, _ *scene, kit host.Kit) (any, error) {
		return kit.PutFirstOwnerLink(ctx, kit.Change(ctx, byOperator()))
	}))
}

func kitImpersonation() []row {
	of := func(name string, do func(ctx context.Context, s *scene, kit host.Kit, i store.Impersonation, token string) *answer) row {
		return kitRequest(name, onStolen, func(s *scene, kit host.Kit) func() *answer {
			ctx := s.t.Context()
			actor := decodeAs[session](s.person(ctx).send("POST", "/signup", map[string]any{"email": s.evilMail, "password": evilPassword}).want(200))
			now := s.Clock.Now()
			c := kit.Change(ctx, byOperator())
			i := store.Impersonation{ID: kit.NewSessionID(), UserID: s.id, ActorID: actor.User.ID, ActorSessionID: sessionIDOf(s, actor.AccessToken), CreatedAt: now, ExpiresAt: now.Add(auth.ImpersonationLife), Reason: "to see"}
			st, _ := store.Capability[store.ImpersonationStore](s.tap.Inner())
			if err := st.BeginImpersonation(ctx, store.BeginImpersonation{Change: c, Impersonation: i}); err != nil {
				s.t.Fatal(err)
			}
			tokens, err := kit.ImpersonationTokens(ctx, i.ID)
			if err != nil {
				s.t.Fatal(err)
			}
			return func() *answer { return do(ctx, s, kit, i, tokens.(*auth.Tokens).AccessToken) }
		})
	}
	request := func(method, path string, body any) func(context.Context, *scene, host.Kit, store.Impersonation, string) *answer {
		return func(_ context.Context, s *scene, _ host.Kit, _ store.Impersonation, token string) *answer {
			return s.evil.send(method, path, body, bearer(token))
		}
	}
	rows := []row{
		of("makes its token", func(ctx context.Context, s *scene, kit host.Kit, i store.Impersonation, _ string) *answer {
			t, err := kit.ImpersonationTokens(ctx, i.ID)
			return returned(s.t, t, err)
		}),
		of("that is none makes no token", func(ctx context.Context, s *scene, kit host.Kit, _ store.Impersonation, _ string) *answer {
			t, err := kit.ImpersonationTokens(ctx, kit.NewSessionID())
			return returned(s.t, t, err)
		}),
		of("goes back", func(ctx context.Context, s *scene, kit host.Kit, i store.Impersonation, _ string) *answer {
			to, err := kit.ImpersonationURL(ctx, byOperator(), i.ID, appURL)
			return returned(s.t, to, err)
		}),
		of("is exchanged", func(ctx context.Context, s *scene, kit host.Kit, i store.Impersonation, _ string) *answer {
			to, err := kit.ImpersonationURL(ctx, byOperator(), i.ID, appURL)
			if err != nil {
				return returned(s.t, nil, err)
			}
			u, err := url.Parse(to)
			if err != nil {
				s.t.Fatal(err)
			}
			return s.evil.send("POST", "/exchange", map[string]any{"code": u.Query().Get("code")})
		}),
		of("tries an operation", func(_ context.Context, s *scene, _ host.Kit, _ store.Impersonation, token string) *answer {
			s.evil.room([]host.Route{{Pattern: "POST /users/{id}", Access: host.Operating, Handle: func(http.ResponseWriter, *http.Request) error { return nil }}})
			return s.evil.send("POST", "/admin/users/1", map[string]any{}, bearer(token))
		}),
		of("is listed", func(_ context.Context, s *scene, _ host.Kit, _ store.Impersonation, _ string) *answer {
			return s.evil.send("GET", "/sessions", nil, s.in())
		}),
		of("has ended, and reads", func(ctx context.Context, s *scene, kit host.Kit, i store.Impersonation, token string) *answer {
			st, _ := store.Capability[store.ImpersonationStore](s.tap.Inner())
			if err := st.EndImpersonation(ctx, store.EndImpersonation{Change: kit.Change(ctx, byOperator()), ID: i.ID}); err != nil {
				s.t.Fatal(err)
			}
			return s.evil.send("GET", "/me", nil, bearer(token))
		}),
		of("has ended, and signs out", func(ctx context.Context, s *scene, kit host.Kit, i store.Impersonation, token string) *answer {
			st, _ := store.Capability[store.ImpersonationStore](s.tap.Inner())
			if err := st.EndImpersonation(ctx, store.EndImpersonation{Change: kit.Change(ctx, byOperator()), ID: i.ID}); err != nil {
				s.t.Fatal(err)
			}
			return s.evil.send("POST", "/logout", nil, bearer(token))
		}),
	}
	for name, body := range map[string]any{"": nil, " here": map[string]any{"scope": "local"}, " everywhere": map[string]any{"scope": "global"}, " of the others": map[string]any{"scope": "others"}} {
		rows = append(rows, of("signs out"+name, request("POST", "/logout", body)))
	}
	for _, pattern := range slices.Sorted(maps.Keys(hostileRows())) {
		method, path, _ := strings.Cut(pattern, " ")
		if pattern != "POST /logout" {
			rows = append(rows, of("asks "+pattern, request(method, strings.ReplaceAll(path, "{provider}", "google"), nil)))
		}
	}
	return rows
}

func sessionIDOf(s *scene, token string) string {
	s.t.Helper()
	c, err := s.Verify(token)
	if err != nil {
		s.t.Fatal(err)
	}
	return c.SessionID
}
