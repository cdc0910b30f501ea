package pages

import (
	"cmp"
	"html/template"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
)

// showProvider redirects the browser to a provider.
func showProvider(v *visit) error {
	if v.r.Method == "HEAD" {
		return nil
	}
	challenge := v.startBound(v.kept())
	to, err := v.p.a.StartOAuth(v.ctx, auth.StartOAuthParams{
		Provider: v.r.PathValue("provider"), RedirectTo: v.p.backURL(), CodeChallenge: challenge,
	})
	if err != nil {
		return err
	}
	return goTo(to)
}

// showBack is the target of providers and links, with a code that only this browser can
// exchange, or with an error.
func showBack(v *visit) error {
	if v.r.Method == "HEAD" {
		return nil
	}
	q, linking, verifier := v.r.URL.Query(), v.flow.Linking, v.flow.Verifier
	v.flow.Linking, v.flow.Verifier = "", ""
	fallback := goTo(v.p.path("/sign-in"))
	if linking != "" {
		fallback = goTo(v.p.path("/"))
	}
	switch {
	case q.Get("error") != "":
		v.flow.Error = cmp.Or(auth.Code(q.Get("error_code")), auth.CodeOAuthDenied)
		if _, known := v.texts["error."+string(v.flow.Error)]; !known {
			v.flow.Error = auth.CodeProviderError
		}
		return fallback
	case linking != "":
		v.flow.Notice = "linked"
		return fallback
	case q.Get("code") == "":
		return fallback
	case verifier == "": // without a verifier, another person's code could sign this browser in
		v.flow.Error = auth.CodeBadCodeVerifier
		return fallback
	}
	tokens, err := v.p.a.Exchange(v.ctx, auth.ExchangeParams{Code: q.Get("code"), CodeVerifier: verifier})
	if _, ok := v.elsewhere(err); ok {
		return err
	}
	if err != nil {
		v.flow.Error = host.As[*auth.Error](v.p.kit.WriteError(v.w, v.r, err)).Code
		return fallback
	}
	to, err := v.signedIn(tokens)
	if err != nil {
		return err
	}
	return goTo(to)
}

// postIdentities links and unlinks providers.
func postIdentities(v *visit) (string, error) {
	provider := v.form.Get("provider")
	if v.form.Get("do") == "unlink" {
		if err := v.p.a.UnlinkIdentity(v.ctx, auth.UnlinkIdentityParams{Caller: v.claims.Caller(), Provider: provider}); err != nil {
			return "", err
		}
		v.flow.Notice = "unlinked"
		return v.p.path("/"), nil
	}
	browser, err := v.p.kit.BindBrowser(v.w, v.r, provider)
	if err != nil {
		return "", err
	}
	to, err := v.p.a.LinkIdentity(v.ctx, auth.LinkIdentityParams{
		Caller: v.claims.Caller(), StartOAuthParams: auth.StartOAuthParams{Provider: provider, RedirectTo: v.p.backURL(), Browser: browser},
	})
	if err != nil {
		return "", err
	}
	// The policy limits redirects after a form post to this origin, so a page forwards
	// the browser.
	v.flow.Linking, v.flow.Verifier = provider, ""
	v.Page, v.Wide, v.Provider, v.Next = "leaving", false, v.p.label(provider), template.URL(to) //nolint:gosec // URL of a configured provider
	return "", nil
}
