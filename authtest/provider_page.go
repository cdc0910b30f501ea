package authtest

import (
	"fmt"
	"html"
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"testing"

	"github.com/authmount/auth"
)

// The pages of a Provider: one to choose a user, and the one that posts Apple's callback.

const pageStyle = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Dev provider</title><style>
body{font:16px/1.5 system-ui,sans-serif;max-width:24rem;margin:10vh auto;padding:0 1rem;color:#1a1d24;background:#f6f5f1}
h1{font-size:1.4rem}label{display:block;margin:.8rem 0}input[type=text],input[type=email]{display:block;width:100%;box-sizing:border-box;font:inherit;padding:.5rem;border:1px solid #999;border-radius:.4rem}
button{font:inherit;padding:.6rem 1rem;border-radius:.4rem;border:1px solid #2f4858;background:#2f4858;color:#fff}button.plain{background:none;color:inherit;border-color:#999}
@media(prefers-color-scheme:dark){body{color:#eee;background:#16181d}input{background:#22252c;color:#eee}}
</style>`

var (
	choicePage = template.Must(template.New("choice").Parse(pageStyle + `
<h1>Dev provider</h1><p>It stands in for a real one ({{.Style}}). Say who you are; anybody will do.</p>
<form method="post">{{range $name, $values := .Request}}<input type="hidden" name="{{$name}}" value="{{index $values 0}}">{{end}}
<label>E-mail <input type="email" name="person_email" value="ada@example.com"></label>
<label>Name <input type="text" name="person_name" value="Ada Lovelace"></label>
<label><input type="checkbox" name="person_verified" checked> The e-mail address is verified</label>
<button name="choice" value="go">Continue</button> <button name="choice" value="cancel" class="plain">Cancel</button></form>`))
	postPage = template.Must(template.New("post").Parse(pageStyle + `
<form method="post" action="{{.To}}">{{range $name, $values := .Values}}<input type="hidden" name="{{$name}}" value="{{index $values 0}}">{{end}}
<button>Continue</button></form><script>document.forms[0].submit()</script>`))
)

func showChoice(w http.ResponseWriter, style string, q url.Values) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = choicePage.Execute(w, map[string]any{"Style": style, "Request": q})
}

func showPost(w http.ResponseWriter, to string, values url.Values) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = postPage.Execute(w, map[string]any{"To": to, "Values": values})
}

// choose handles the post of the page. The same email address is always the same user.
func (p *Provider) choose(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "malformed form", http.StatusBadRequest)
		return
	}
	style, q := r.PathValue("style"), r.PostForm
	if wrong := checkRequest(style, q); wrong != "" {
		http.Error(w, wrong, http.StatusBadRequest)
		return
	}
	email := q.Get("person_email")
	who := Person{
		Subject: fmt.Sprint(number("person " + email)), Email: email, EmailVerified: q.Has("person_verified"), Name: q.Get("person_name"),
	}
	p.callBack(w, r, style, q, &who, q.Get("choice") == "cancel")
}

var hiddenInput = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// Authorize opens the provider as a browser would, and returns the parameters of the
// callback.
func (p *Provider) Authorize(tb testing.TB, authURL string) url.Values {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodGet, authURL, http.NoBody)
	w := httptest.NewRecorder()
	p.serve(w, r)
	switch w.Code {
	case http.StatusFound:
		u, err := url.Parse(w.Header().Get("Location"))
		if err != nil {
			tb.Fatal(err)
		}
		return u.Query()
	case http.StatusOK:
		values := url.Values{}
		for _, m := range hiddenInput.FindAllStringSubmatch(w.Body.String(), -1) {
			values.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
		}
		return values
	}
	tb.Fatalf("the provider refused: %d %s", w.Code, w.Body)
	return nil
}

// SignInWith signs a user in with a configured provider that p plays.
func (e *Env) SignInWith(tb testing.TB, p *Provider, name string, who Person) *SignedIn {
	tb.Helper()
	const browser = "authtest-browser"
	to, err := e.StartOAuth(tb.Context(), auth.StartOAuthParams{Provider: name, Browser: browser})
	if err != nil {
		tb.Fatal(err)
	}
	p.SignsIn(who)
	back := p.Authorize(tb, to)
	res, err := e.FinishOAuth(tb.Context(), auth.OAuthCallback{
		Provider: name, State: back.Get("state"), Code: back.Get("code"), Error: back.Get("error"),
		Issuer: back.Get("iss"), User: back.Get("user"), Browser: browser,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return &SignedIn{Tokens: *res.Tokens}
}
