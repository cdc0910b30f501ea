package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// A provider that cannot be reached, at whichever step, is its fault and nobody's
// panic: 502, with the cause in the log.
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
			w := newWorld(t, auth.WithProvider(p))
			idp.Now = w.Clock.Now
			w.visitor(idp).signIn(p.Name, ada, "").want(502, auth.CodeProviderError)
			if log := w.log.String(); strings.Contains(log, "panic") || !strings.Contains(log, "refused") {
				t.Errorf("log %s", log)
			}
			if _, err := w.Store.User(t.Context(), store.ByEmail(ada.Email)); err == nil {
				t.Error("a user was made")
			}
		})
	}
}
