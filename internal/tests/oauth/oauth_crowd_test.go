package oauth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// One person signs in from many tabs in parallel, after each tab has visited the provider.
// All of them are signed in to one account, and no tab blocks another.
func TestOneIdentityInManyTabs(t *testing.T) {
	const tabs = 60
	for name, c := range map[string]struct {
		who      authtest.Person
		before   func(w *harness.World, idp *authtest.Provider)
		signedUp int // number of accounts that result
		query    string
		opts     []auth.Option
	}{
		"a known identity": {who: harness.Ada, before: func(w *harness.World, idp *authtest.Provider) {
			w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
		}},
		"a known identity, by a code": {who: harness.Ada, before: func(w *harness.World, idp *authtest.Provider) {
			w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
		}, query: "redirect_to=https://app.test/"},
		"a new identity":               {who: harness.Ada, signedUp: 1},
		"a new one, with a hook":       {who: harness.Ada, signedUp: 1, opts: []auth.Option{auth.WithHooks(auth.Hooks{OnUserCreating: func(context.Context, auth.User) error { return nil }})}},
		"a new one without an address": {who: authtest.Person{Subject: "7"}, signedUp: 1},
		"one that joins an account":    {who: harness.Ada, before: func(w *harness.World, _ *authtest.Provider) { w.Member(harness.Ada.Email) }},
		"one that takes an account":    {who: harness.Ada, before: func(w *harness.World, _ *authtest.Provider) { w.PostSignUp(harness.Ada.Email) }},
	} {
		t.Run(name, func(t *testing.T) {
			w, idp := harness.NewProviderWorld(t, append(c.opts, auth.WithRateLimits(auth.RateLimits{Off: true}))...)
			if c.before != nil {
				c.before(w, idp)
			}
			idp.SignsIn(c.who)
			type tab struct {
				*harness.Visitor
				back url.Values
			}
			var open []tab
			for range tabs {
				v := w.NewVisitor(idp)
				open = append(open, tab{v, idp.Authorize(t, v.Start("google", c.query))})
			}
			w.Fired()
			answers := make([]*harness.Answer, tabs)
			var wg sync.WaitGroup
			for i, v := range open {
				wg.Go(func() { answers[i] = v.Back("google", v.back) })
			}
			wg.Wait()
			signedUp := 0
			for _, e := range w.Fired() {
				if e == auth.EventSignedUp {
					signedUp++
				}
			}
			ids := map[string]bool{}
			for _, a := range answers {
				if c.query != "" {
					a = w.PostExchange(a.Location().Query().Get("code"), harness.Verifier)
				}
				if a.Status != http.StatusOK {
					t.Errorf("%d %s", a.Status, a.Body)
					continue
				}
				ids[a.Session().User.ID] = true
			}
			if len(ids) != 1 || signedUp != c.signedUp {
				t.Errorf("%d accounts, %d signed up", len(ids), signedUp)
			}
			u, err := w.Store.User(t.Context(), store.ByIdentity("google", c.who.Subject))
			if err != nil || !ids[u.ID] || len(u.Identities) != 1 {
				t.Errorf("%+v, %v", u, err)
			}
		})
	}
}

// An unreachable provider, at any step, is the provider's fault and causes no panic: 502,
// with the cause in the log.
func TestProviderUnreachable(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, at := range map[string]func(idp *authtest.Provider) provider.Provider{
		"token endpoint": func(idp *authtest.Provider) provider.Provider {
			p := idp.Google()
			p.TokenURL = gone.URL + "/token"
			return p
		},
		"keys": func(idp *authtest.Provider) provider.Provider {
			p := idp.Google()
			p.JWKSURL = gone.URL + "/keys"
			return p
		},
		"API": func(idp *authtest.Provider) provider.Provider {
			return ownProvider(idp, func(ctx context.Context, api *provider.API) (provider.Profile, error) {
				var u struct{ ID string }
				err := api.Get(ctx, gone.URL+"/me", &u)
				return provider.Profile{Subject: u.ID}, err
			})
		},
		"API, by hand": func(idp *authtest.Provider) provider.Provider {
			return ownProvider(idp, func(ctx context.Context, api *provider.API) (provider.Profile, error) {
				res, err := api.Do(ctx, provider.Request{URL: gone.URL + "/me"})
				if err != nil {
					return provider.Profile{}, err
				}
				return provider.Profile{Subject: string(res.Body)}, nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			idp := authtest.StartProvider(t)
			p := at(idp)
			w := harness.NewWorld(t, auth.WithProvider(p))
			idp.Now = w.Clock.Now
			w.NewVisitor(idp).SignIn(p.Name, harness.Ada, "").Want(502, auth.CodeProviderError)
			if log := w.Log.String(); strings.Contains(log, "panic") || !strings.Contains(log, "refused") {
				t.Errorf("log %s", log)
			}
			if _, err := w.Store.User(t.Context(), store.ByEmail(harness.Ada.Email)); err == nil {
				t.Error("a user was made")
			}
		})
	}
}
