package traces_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
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

func kitRestRows() map[string][]harness.Row {
	return map[string][]harness.Row{
		"kit settings": kitSettings(), "kit tries": kitTries(), "kit first owner": kitFirstOwner(), "kit impersonation": kitImpersonation(),
	}
}

func kitSettings() (rows []harness.Row) {
	edit := func(name string, stored string, changes map[string]string) harness.Row {
		return plainly(name, harness.OnStolen, func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error) {
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
				"password": {User: user(s), PasswordHash: harness.BcryptHash}, "address": {User: user(s)}, "nothing": {}, "factor": {User: auth.User{Email: s.Email, EmailVerifiedAt: s.Clock.Now(), MFAEnabled: true}}, "number": {User: auth.User{Phone: s.Number, PhoneVerifiedAt: s.Clock.Now()}},
				"identity": {User: auth.User{Identities: []auth.Identity{{Provider: "google", Subject: "1"}}}},
			} {
				for factor, with := range map[string]bool{"": false, " and factor": true} {
					before, after, err := kit.CanSignIn(ctx, e, c, with)
					if err != nil {
						return nil, err
					}
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
	return append(rows, kitRow("are read", harness.OnStolen, func(s *harness.Scene, kit host.Kit) asking {
		st, _ := store.Capability[store.ProjectStore](s.Tap.Inner())
		if _, err := st.PutSettings(s.T.Context(), store.PutSettings{Change: kit.Change(s.T.Context(), harness.ByOperator()), Document: []byte(`{"sender_name":"Acme"}`)}); err != nil {
			s.T.Fatal(err)
		}
		return func(ctx context.Context) (any, error) {
			kit.ReloadSettings(ctx)
			revision, at := kit.SettingsState()
			return map[string]any{"revision": revision > 0, "read": !at.IsZero(), "name": kit.Site().App}, nil
		}
	}))
}

func kitTries() (rows []harness.Row) {
	for _, by := range []auth.Channel{auth.ChannelEmail, auth.ChannelSMS} {
		for name, edit := range map[string]func(s *harness.Scene) store.UserPatch{
			"to what is there": func(*harness.Scene) store.UserPatch { return store.UserPatch{} },
			"to a number":      func(s *harness.Scene) store.UserPatch { return store.UserPatch{Phone: &s.Number} },
			"to a proved number": func(s *harness.Scene) store.UserPatch {
				now := s.Clock.Now()
				return store.UserPatch{Phone: &s.Number, PhoneVerifiedAt: &now}
			},
		} {
			for _, k := range []harness.Kind{harness.OnAddress, harness.OnStolen} {
				rows = append(rows, kitRow(string(by)+" "+name, k, func(s *harness.Scene, kit host.Kit) asking {
					s.Patch(s.Id, edit(s))
					return func(ctx context.Context) (any, error) {
						test, err := kit.PermitTest(ctx, user(s), by)
						if err != nil {
							return nil, err
						}
						c := kit.Change(ctx, harness.ByOperator())
						test.Add(ctx, &c)
						defer test.Forget()
						if err := kit.Store().PutToken(ctx, store.PutToken{Change: c, Token: store.Token{Hash: []byte("test" + s.Id), Purpose: store.PurposeExchange, Subject: s.Id, CreatedAt: c.Now, ExpiresAt: c.Now.Add(time.Minute)}}); err != nil {
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
		plainly("tells how it is", harness.OnStolen, func(ctx context.Context, _ *harness.Scene, kit host.Kit) (any, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
			if err != nil {
				return nil, err
			}
			r.RemoteAddr = "192.0.2.7:1234"
			r.Header.Set("X-Forwarded-For", "192.0.2.8")
			d, err := kit.Diagnose(kit.WithFacts(r))
			d.Store.Response, d.Store.Ahead, d.Store.Now = 0, nil, nil // by a clock of its own
			if d.Settings.ReadAt != nil {
				d.Settings.ReadAt = &time.Time{}
			}
			return d, err
		}),
		plainly("tells what is written", harness.OnStolen, func(ctx context.Context, s *harness.Scene, kit host.Kit) (any, error) {
			kit.Emit(ctx, harness.ByOperator(), auth.Event{Type: auth.EventAdminDenied, UserID: s.Id, Record: &store.Record{Operation: "op", Denied: true}})
			return kit.EventsLost(), kit.Flush(ctx)
		}),
	)
}

// room sends a person's requests to the endpoints of a package built on Auth.
func room(p *harness.Person, routes []host.Route) {
	p.Handler = host.Of(p.S).Handler("/admin", routes)
}

// kitRequest is a request to a package built on Auth.
func kitRequest(name string, k harness.Kind, prepare func(s *harness.Scene, kit host.Kit) func() *harness.Answer) harness.Row {
	return harness.Row{Name: name, Kind: k, Prepare: func(s *harness.Scene) func() *harness.Answer { return prepare(s, host.Of(s)) }}
}

func kitFirstOwner() []harness.Row {
	of := func(name string, k harness.Kind, do func(s *harness.Scene, token string) *harness.Answer) harness.Row {
		return kitRequest(name, k, func(s *harness.Scene, kit host.Kit) func() *harness.Answer {
			ctx := s.T.Context()
			link, err := kit.PutFirstOwnerLink(ctx, kit.Change(ctx, harness.ByOperator()))
			if err != nil { // an earlier trial created the first owner
				return func() *harness.Answer { return returned(s.T, nil, err) }
			}
			to, err := url.Parse(link)
			if err != nil {
				s.T.Fatal(err)
			}
			room(s.Evil, kit.FirstOwnerRoutes())
			return func() *harness.Answer { return do(s, to.Query().Get("token")) }
		})
	}
	inForm := func(fields url.Values) string { return fields.Encode() }
	rows := []harness.Row{
		of("gets the page", harness.OnStolen, func(s *harness.Scene, token string) *harness.Answer {
			return s.Evil.Send("GET", "/admin/first-owner?token="+token, nil, s.Authorization())
		}),
		of("gets the page, signed out", harness.OnStolen, func(s *harness.Scene, token string) *harness.Answer {
			return s.Evil.Send("GET", "/admin/first-owner?token="+token, nil)
		}),
		of("gets the page by no link", harness.OnStolen, func(s *harness.Scene, _ string) *harness.Answer {
			return s.Evil.Send("GET", "/admin/first-owner?token=x", nil, s.Authorization())
		}),
		of("posts", harness.OnStolen, func(s *harness.Scene, token string) *harness.Answer {
			return s.Evil.Send("POST", "/admin/first-owner", map[string]any{"token": token}, s.Authorization())
		}),
		of("posts", harness.OnAddress, func(s *harness.Scene, token string) *harness.Answer {
			return s.Evil.Send("POST", "/admin/first-owner", map[string]any{"token": token}, s.Authorization())
		}),
		of("posts nothing", harness.OnStolen, func(s *harness.Scene, _ string) *harness.Answer {
			return s.Evil.Send("POST", "/admin/first-owner", map[string]any{}, s.Authorization())
		}),
		of("posts no JSON", harness.OnStolen, func(s *harness.Scene, _ string) *harness.Answer {
			return s.Evil.Send("POST", "/admin/first-owner", "{", s.Authorization())
		}),
		of("posts another link", harness.OnStolen, func(s *harness.Scene, _ string) *harness.Answer {
			return s.Evil.Send("POST", "/admin/first-owner", map[string]any{"token": "x"}, s.Authorization())
		}),
		of("posts, signed out", harness.OnStolen, func(s *harness.Scene, token string) *harness.Answer {
			return s.Evil.Send("POST", "/admin/first-owner", map[string]any{"token": token})
		}),
		of("sends the form", harness.OnStolen, func(s *harness.Scene, token string) *harness.Answer {
			return s.Evil.Send("POST", "/admin/first-owner", inForm(url.Values{"token": {token}}), harness.Form, s.Authorization())
		}),
		of("sends the form", harness.OnAddress, func(s *harness.Scene, token string) *harness.Answer {
			return s.Evil.Send("POST", "/admin/first-owner", inForm(url.Values{"token": {token}}), harness.Form, s.Authorization())
		}),
		of("sends the form, signed out", harness.OnStolen, func(s *harness.Scene, token string) *harness.Answer {
			return s.Evil.Send("POST", "/admin/first-owner", inForm(url.Values{"token": {token}}), harness.Form)
		}),
		of("sends the form with a bad token", harness.OnStolen, func(s *harness.Scene, token string) *harness.Answer {
			return s.Evil.Send("POST", "/admin/first-owner", inForm(url.Values{"token": {token}}), harness.Form, harness.Bearer("x"))
		}),
		of("sends the form twice", harness.OnStolen, func(s *harness.Scene, token string) *harness.Answer {
			s.Evil.Send("POST", "/admin/first-owner", inForm(url.Values{"token": {token}}), harness.Form, s.Authorization())
			return s.Evil.Send("POST", "/admin/first-owner", inForm(url.Values{"token": {token}}), harness.Form, s.Authorization())
		}),
		of("sends a form of two tokens", harness.OnStolen, func(s *harness.Scene, token string) *harness.Answer {
			return s.Evil.Send("POST", "/admin/first-owner", "token="+token+"&token="+token, harness.Form, s.Authorization())
		}),
	}
	return append(rows, plainly("is made", harness.OnStolen, func(ctx context.Context, _ *harness.Scene, kit host.Kit) (any, error) {
		return kit.PutFirstOwnerLink(ctx, kit.Change(ctx, harness.ByOperator()))
	}))
}

// impersonated is a request of an operator who acts as the account.
func impersonated(name string, do func(ctx context.Context, s *harness.Scene, kit host.Kit, i store.Impersonation, token string) *harness.Answer) harness.Row {
	return kitRequest(name, harness.OnStolen, func(s *harness.Scene, kit host.Kit) func() *harness.Answer {
		ctx := s.T.Context()
		actor := harness.DecodeAs[harness.Session](s.NewPerson(ctx).Send("POST", "/signup", map[string]any{"email": s.EvilMail, "password": harness.EvilPassword}).Want(200))
		now := s.Clock.Now()
		c := kit.Change(ctx, harness.ByOperator())
		i := store.Impersonation{ID: kit.NewSessionID(), UserID: s.Id, ActorID: actor.User.ID, ActorSessionID: sessionIDOf(s, actor.AccessToken), CreatedAt: now, ExpiresAt: now.Add(auth.ImpersonationLife), Reason: "to see"}
		st, _ := store.Capability[store.AdminStore](s.Tap.Inner())
		if err := st.BeginImpersonation(ctx, store.BeginImpersonation{Change: c, Impersonation: i}); err != nil {
			s.T.Fatal(err)
		}
		tokens, err := kit.ImpersonationTokens(ctx, i.ID)
		if err != nil {
			s.T.Fatal(err)
		}
		return func() *harness.Answer { return do(ctx, s, kit, i, tokens.(*auth.Tokens).AccessToken) }
	})
}

func kitImpersonation() []harness.Row {
	of := impersonated
	request := func(method, path string, body any) func(context.Context, *harness.Scene, host.Kit, store.Impersonation, string) *harness.Answer {
		return func(_ context.Context, s *harness.Scene, _ host.Kit, _ store.Impersonation, token string) *harness.Answer {
			return s.Evil.Send(method, path, body, harness.Bearer(token))
		}
	}
	rows := []harness.Row{
		of("makes its token", func(ctx context.Context, s *harness.Scene, kit host.Kit, i store.Impersonation, _ string) *harness.Answer {
			t, err := kit.ImpersonationTokens(ctx, i.ID)
			return returned(s.T, t, err)
		}),
		of("that is none makes no token", func(ctx context.Context, s *harness.Scene, kit host.Kit, _ store.Impersonation, _ string) *harness.Answer {
			t, err := kit.ImpersonationTokens(ctx, kit.NewSessionID())
			return returned(s.T, t, err)
		}),
		of("goes back", func(ctx context.Context, s *harness.Scene, kit host.Kit, i store.Impersonation, _ string) *harness.Answer {
			to, err := kit.ImpersonationURL(ctx, harness.ByOperator(), i.ID, harness.AppURL, "")
			return returned(s.T, to, err)
		}),
		of("is exchanged", func(ctx context.Context, s *harness.Scene, kit host.Kit, i store.Impersonation, _ string) *harness.Answer {
			to, err := kit.ImpersonationURL(ctx, harness.ByOperator(), i.ID, harness.AppURL, "")
			if err != nil {
				return returned(s.T, nil, err)
			}
			u, err := url.Parse(to)
			if err != nil {
				s.T.Fatal(err)
			}
			return s.Evil.Send("POST", "/exchange", map[string]any{"code": u.Query().Get("code")})
		}),
		of("tries an operation", func(_ context.Context, s *harness.Scene, _ host.Kit, _ store.Impersonation, token string) *harness.Answer {
			room(s.Evil, []host.Route{{Pattern: "POST /users/{id}", Access: host.Operating, Handle: func(http.ResponseWriter, *http.Request) error { return nil }}})
			return s.Evil.Send("POST", "/admin/users/1", map[string]any{}, harness.Bearer(token))
		}),
		of("is listed", func(_ context.Context, s *harness.Scene, _ host.Kit, _ store.Impersonation, _ string) *harness.Answer {
			return s.Evil.Send("GET", "/sessions", nil, s.Authorization())
		}),
		of("has ended, and reads", func(ctx context.Context, s *harness.Scene, kit host.Kit, i store.Impersonation, token string) *harness.Answer {
			st, _ := store.Capability[store.AdminStore](s.Tap.Inner())
			if err := st.EndImpersonation(ctx, store.EndImpersonation{Change: kit.Change(ctx, harness.ByOperator()), ID: i.ID}); err != nil {
				s.T.Fatal(err)
			}
			return s.Evil.Send("GET", "/me", nil, harness.Bearer(token))
		}),
		of("has ended, and signs out", func(ctx context.Context, s *harness.Scene, kit host.Kit, i store.Impersonation, token string) *harness.Answer {
			st, _ := store.Capability[store.AdminStore](s.Tap.Inner())
			if err := st.EndImpersonation(ctx, store.EndImpersonation{Change: kit.Change(ctx, harness.ByOperator()), ID: i.ID}); err != nil {
				s.T.Fatal(err)
			}
			return s.Evil.Send("POST", "/logout", nil, harness.Bearer(token))
		}),
	}
	for name, body := range map[string]any{"": nil, " here": map[string]any{"scope": "local"}, " everywhere": map[string]any{"scope": "global"}, " of the others": map[string]any{"scope": "others"}} {
		rows = append(rows, of("signs out"+name, request("POST", "/logout", body)))
	}
	return rows
}

// An impersonating user may read on every route, and do nothing else.
func TestTracesOfImpersonatedRequests(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, pattern := range slices.Sorted(maps.Keys(harness.HostileRows())) {
		method, path, _ := strings.Cut(pattern, " ")
		r := impersonated("asks "+pattern, func(_ context.Context, s *harness.Scene, _ host.Kit, _ store.Impersonation, token string) *harness.Answer {
			return s.Evil.Send(method, strings.ReplaceAll(path, "{provider}", "google"), nil, harness.Bearer(token))
		})
		tr := newTraceWorld(t, r).trace(harness.Trial{Row: r}, 7*time.Second)
		lines = append(lines, pattern+": "+harness.ResultOf(tr.Answer()))
		for _, line := range tr.lines {
			if strings.Contains(line, " users ") {
				t.Errorf("%s: %s", pattern, line)
			}
		}
	}
	compareTrace(t, "impersonated requests", lines)
}

func sessionIDOf(s *harness.Scene, token string) string {
	s.T.Helper()
	c, err := s.Verify(token)
	if err != nil {
		s.T.Fatal(err)
	}
	return c.SessionID
}
