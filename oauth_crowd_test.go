package auth_test

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// One person signs in by many tabs at once, each of which has been at the
// provider already. All of them are signed in, to one account: none is in
// another's way.
func TestOneIdentityInManyTabs(t *testing.T) {
	const tabs = 60
	for name, c := range map[string]struct {
		who      authtest.Person
		before   func(w *world, idp *authtest.Provider)
		signedUp int // accounts that come of it
		query    string
		opts     []auth.Option
	}{
		"a known identity":             {who: ada, before: func(w *world, idp *authtest.Provider) { w.visitor(idp).signIn("google", ada, "").session() }},
		"a known identity, by a code":  {who: ada, before: func(w *world, idp *authtest.Provider) { w.visitor(idp).signIn("google", ada, "").session() }, query: "redirect_to=https://app.test/"},
		"a new identity":               {who: ada, signedUp: 1},
		"a new one, with a hook":       {who: ada, signedUp: 1, opts: []auth.Option{auth.WithHooks(auth.Hooks{OnUserCreating: func(context.Context, auth.User) error { return nil }})}},
		"a new one without an address": {who: authtest.Person{Subject: "7"}, signedUp: 1},
		"one that joins an account":    {who: ada, before: func(w *world, _ *authtest.Provider) { w.member(ada.Email) }},
		"one that takes an account":    {who: ada, before: func(w *world, _ *authtest.Provider) { w.signUp(ada.Email) }},
	} {
		t.Run(name, func(t *testing.T) {
			w, idp := providerWorld(t, append(c.opts, auth.WithRateLimits(auth.RateLimits{Off: true}))...)
			if c.before != nil {
				c.before(w, idp)
			}
			idp.SignsIn(c.who)
			type tab struct {
				*visitor
				back url.Values
			}
			var open []tab
			for range tabs {
				v := w.visitor(idp)
				open = append(open, tab{v, idp.Authorize(t, v.start("google", c.query))})
			}
			w.fired()
			answers := make([]*answer, tabs)
			var wg sync.WaitGroup
			for i, v := range open {
				wg.Go(func() { answers[i] = v.visitor.back("google", v.back) })
			}
			wg.Wait()
			signedUp := 0
			for _, e := range w.fired() {
				if e == auth.EventSignedUp {
					signedUp++
				}
			}
			ids := map[string]bool{}
			for _, a := range answers {
				if c.query != "" {
					a = w.do("POST", "/exchange", map[string]any{"code": a.location().Query().Get("code")})
				}
				if a.status != http.StatusOK {
					t.Errorf("%d %s", a.status, a.body)
					continue
				}
				ids[a.session().User.ID] = true
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
