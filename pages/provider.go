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
	to, err := v.startProvider(v.r.PathValue("provider"), v.kept(), "")
	if err != nil {
		return err
	}
	return goTo(to)
}

// startProvider starts a sign-in at a provider and returns the provider's URL.
func (v *visit) startProvider(provider string, remember bool, code string) (string, error) {
	challenge := v.startBound(remember)
	v.flow.Provider = provider
	return v.p.a.StartOAuth(v.ctx, auth.StartOAuthParams{
		Provider: provider, RedirectTo: v.p.backURL(), CodeChallenge: challenge, ConfirmationCode: code,
	})
}

// showConfirm asks for the code of the confirmation link after a sign-in at a provider.
func showConfirm(v *visit) error {
	if v.flow.Provider == "" {
		return goTo(v.p.path("/sign-in"))
	}
	v.Channel, v.Address, v.SendAgain = "provider", v.p.label(v.flow.Provider), v.p.path("/sign-in/with/"+v.flow.Provider)
	return nil
}

// postConfirm signs in at the provider once more, together with the code.
func postConfirm(v *visit) (string, error) {
	if v.flow.Provider == "" {
		return v.p.path("/sign-in"), nil
	}
	code, err := v.code()
	if err != nil {
		return "", err
	}
	to, err := v.startProvider(v.flow.Provider, v.flow.Remember, code)
	if err != nil {
		return "", err
	}
	v.leave(v.flow.Provider, to)
	return "", nil
}

// leave shows a page that forwards the browser, because the policy limits redirects after a
// form post to this origin.
func (v *visit) leave(provider, to string) {
	v.Page, v.Wide, v.Provider, v.Next = "leaving", false, v.p.label(provider), template.URL(to) //nolint:gosec // URL of a configured provider
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
		switch {
		case linking != "" || v.flow.Provider == "":
		case v.flow.Error == auth.CodeEmailNotVerified, v.flow.Error == auth.CodeInvalidCode:
			return goTo(v.p.path("/sign-in/confirm"))
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
	v.flow.Linking, v.flow.Verifier = provider, ""
	v.leave(provider, to)
	return "", nil
}
