package auth_test

import (
	"go/ast"
	"maps"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// Wherever the code gives an account another root, a number or an identity, it asks
// whether the account may grow, or there is a reason not to. A function that is not
// listed here fails.
func TestWhateverAddsARootAsks(t *testing.T) {
	may := map[string]string{ // function: why it need not ask
		"ConfirmPhone":  "",
		"linkIdentity":  "",
		"detachPhone":   "takes one away",
		"renewIdentity": "the account's already",
		"joinByEmail":   "", // by prove: the address is proved
		"undo":          "takes one away",
		"checkSignUp":   "of an account to make",
		"editRoots":     "an operator answers for it, and what nobody proved goes with a takeover",
	}
	seen := map[string]bool{}
	set, files := sources(t)
	for _, file := range files {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			adds, asks := false, false
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CompositeLit:
					if id, ok := n.Type.(*ast.Ident); ok && id.Name == "UserPatch" {
						for _, e := range n.Elts {
							kv, _ := e.(*ast.KeyValueExpr)
							key, _ := kv.Key.(*ast.Ident)
							adds = adds || key.Name == "Phone" || key.Name == "Link"
						}
					}
				case *ast.AssignStmt:
					for _, to := range n.Lhs {
						if s, ok := to.(*ast.SelectorExpr); ok && (s.Sel.Name == "Link" || s.Sel.Name == "Phone") {
							id, _ := s.X.(*ast.Ident)
							adds = adds || id != nil && (id.Name == "p" || id.Name == "patch")
						}
					}
				case *ast.CallExpr:
					if id, ok := n.Fun.(*ast.Ident); ok {
						asks = asks || id.Name == "mayGrow" || id.Name == "prove"
					}
				}
				return true
			})
			if !adds {
				continue
			}
			why, listed := may[f.Name.Name]
			seen[f.Name.Name] = true
			if !listed || why == "" && !asks {
				t.Errorf("%s: %s adds a root and does not ask mayGrow", set.Position(f.Pos()), f.Name.Name)
			}
		}
	}
	for name := range may {
		if !seen[name] {
			t.Errorf("%s adds no root: this test looks for the wrong thing", name)
		}
	}
}

// An account that nobody has proved gets 403 email_not_verified at every endpoint
// that would add a root, also if the proof went after it was begun; a proved one does
// not. An endpoint whose row lists the error and that is not tried here fails.
func TestDoorsToAnotherRoot(t *testing.T) {
	type door struct {
		begin func(w *world, idp *authtest.Provider, s session) func() *answer // while the account is proved
		want  int                                                              // of a proved account
	}
	link := map[string]any{"redirect_to": appURL, "code_challenge": challengeOf(verifier)}
	callback := func(post bool) door {
		return door{func(w *world, idp *authtest.Provider, s session) func() *answer {
			v := w.visitor(idp)
			to := v.link("github", s, nil)
			idp.SignsIn(evilGit)
			back := idp.Authorize(t, to)
			if post {
				return func() *answer { return v.do("POST", "/oauth/github/callback", back.Encode(), form) }
			}
			return func() *answer { return v.back("github", back) }
		}, 200}
	}
	doors := map[string]door{
		"PATCH /me": {func(w *world, _ *authtest.Provider, s session) func() *answer {
			return func() *answer {
				return w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(s.AccessToken))
			}
		}, 200},
		"POST /otp/verify": {func(w *world, _ *authtest.Provider, s session) func() *answer {
			w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(s.AccessToken)).want(200)
			code := w.Mail(t, number, auth.KindPhoneCode).Code
			return func() *answer { return w.otp(number, code, bearer(s.AccessToken)) }
		}, 200},
		"POST /me/identities/{provider}": {func(w *world, _ *authtest.Provider, s session) func() *answer {
			return func() *answer { return w.do("POST", "/me/identities/github", link, bearer(s.AccessToken)) }
		}, 200},
		"GET /oauth/{provider}/callback":  callback(false),
		"POST /oauth/{provider}/callback": callback(true),
		"POST /exchange": {func(w *world, idp *authtest.Provider, s session) func() *answer {
			to := w.visitor(idp).link("github", s, link)
			idp.SignsIn(evilGit)
			back := w.visitor(idp).back("github", idp.Authorize(t, to)).want(303)
			at, _ := url.Parse(back.header.Get("Location"))
			return func() *answer { return w.exchange(at.Query().Get("code"), verifier) }
		}, 200},
	}
	none, nobody := "", time.Time{}
	for route, d := range doors {
		for name, proved := range map[string]bool{"proved": true, "unproved": false} {
			t.Run(route+", "+name, func(t *testing.T) {
				w, idp := providerWorld(t)
				s := w.member(adaMail)
				come := d.begin(w, idp, s)
				if proved {
					come().want(d.want)
					return
				}
				w.patch(s.User.ID, store.UserPatch{EmailVerifiedAt: &nobody, Phone: &none})
				come().want(403, auth.CodeEmailNotVerified)
				if u, err := w.Store.User(t.Context(), store.ByID(s.User.ID)); err != nil || u.Phone != "" || len(u.Identities) > 0 {
					t.Errorf("%+v, %v", u, err)
				}
			})
		}
	}
	w, _ := providerWorld(t)
	signIns := []string{"POST /oauth/{provider}/id-token"} // whose provider has not proved the address of an account to make
	want := slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(doors)), signIns...)))
	if got := slices.Sorted(slices.Values(auth.RoutesWith(w.Auth, auth.CodeEmailNotVerified))); !slices.Equal(got, want) {
		t.Errorf("routes with the error: %v, tried here: %v", got, want)
	}
}
