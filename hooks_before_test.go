package auth_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
)

// Every door to a new password asks; one that is refused leaves the old one, the
// sessions and the link as they are.
func TestBeforePasswordChange(t *testing.T) {
	const next = "another horse battery"
	reset := func(w *world) string {
		w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
		return w.linkToken("ada@example.com", auth.KindResetPassword)
	}
	for name, c := range map[string]struct {
		method string
		door   func(w *world, s session) func() *answer
	}{
		"change": {"change", func(w *world, s session) func() *answer {
			return func() *answer {
				return w.do("POST", "/me/password", map[string]any{"current_password": authtest.Password, "new_password": next}, bearer(s.AccessToken))
			}
		}},
		"reset": {"reset", func(w *world, _ session) func() *answer {
			token := reset(w)
			return func() *answer {
				return w.do("POST", "/reset-password", map[string]any{"token": token, "new_password": next})
			}
		}},
		"reset on the page": {"reset", func(w *world, _ session) func() *answer {
			token := reset(w)
			return func() *answer {
				return w.do("POST", "/reset-password", url.Values{"token": {token}, "new_password": {next}}.Encode(), form)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var refusal error = auth.Reject(auth.CodeMethodDisabled, "Not on a Sunday.")
			asked := []string{}
			w := newWorld(t, auth.WithHooks(auth.Hooks{BeforePasswordChange: func(_ context.Context, p auth.PasswordChange) error {
				asked = append(asked, p.Method+" of "+p.User.Email)
				return refusal
			}}))
			s := w.proven("ada@example.com")
			try := c.door(w, s)
			w.fired()
			if a := try().want(403); !strings.Contains(string(a.body), "Sunday") {
				t.Errorf("body %s", a.body)
			}
			w.wantEvents()
			if !w.alive(s.AccessToken) {
				t.Error("the session ended")
			}
			w.login("ada@example.com", next).want(401)
			w.login("ada@example.com", authtest.Password).want(200)
			refusal = nil
			if a := try(); a.status >= 400 {
				t.Errorf("without a refusal: %d %s", a.status, a.body)
			}
			w.login("ada@example.com", next).want(200)
			if want := c.method + " of ada@example.com"; !slices.Equal(asked, []string{want, want}) {
				t.Errorf("asked %q", asked)
			}
		})
	}
}

// proven is signed in to an account with authtest.Password.
func (w *world) proven(email string) session {
	return session{AccessToken: w.LoginAs(w.t, email).AccessToken}
}

// A deletion is asked about, by whomever; one that is refused leaves everything.
func TestBeforeDelete(t *testing.T) {
	var refusal error
	asked := 0
	w := newWorld(t, auth.WithSettings(auth.Settings{AccountDeletion: auth.On}), auth.WithHooks(auth.Hooks{BeforeDelete: func(_ context.Context, u auth.User) error {
		asked++
		if u.Email != "ada@example.com" {
			t.Errorf("asked about %+v", u)
		}
		return refusal
	}}))
	s := w.signUp("ada@example.com")
	w.fired()
	refusal = auth.Reject(auth.CodeReauthNeeded, "Pay first.")
	w.do("DELETE", "/me", nil, bearer(s.AccessToken)).want(403, auth.CodeReauthNeeded)
	refusal = errors.New("the database said no")
	w.do("DELETE", "/me", nil, bearer(s.AccessToken)).want(500, auth.CodeInternal)
	if err := w.DeleteUser(t.Context(), auth.DeleteUserParams{Caller: auth.ByApplication(s.User.ID)}); !errors.Is(err, auth.CodeInternal) {
		t.Errorf("the application: %v", err)
	}
	w.wantEvents()
	if !w.alive(s.AccessToken) {
		t.Error("deleted")
	}
	refusal = nil
	w.do("DELETE", "/me", nil, bearer(s.AccessToken)).want(204)
	if asked != 4 {
		t.Errorf("asked %d times", asked)
	}
}

// No other door: a patch gets its password from setPassword, which takes what
// choosePassword made; and the store deletes for DeleteUser alone.
func TestOneDoorForPasswordsAndDeletions(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]string{
		"a patch's password":   "setPassword",
		"a chosenPassword":     "choosePassword",
		"store.DeleteUser":     "endUser",
		"beforePasswordChange": "choosePassword",
		"beforeDelete":         "endUser",
	}
	found := map[string]int{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") || f.Name() == "store_user.go" {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, what := range doorsIn(fn) {
				found[what]++
				if allowed[what] != fn.Name.Name {
					t.Errorf("%s: %s is another door to %s", f.Name(), fn.Name.Name, what)
				}
			}
		}
	}
	for what := range allowed {
		if found[what] == 0 {
			t.Errorf("nothing does %s any more", what)
		}
	}
}

// doorsIn names what a function does of the above.
func doorsIn(fn *ast.FuncDecl) (list []string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				s, ok := to.(*ast.SelectorExpr)
				if !ok || s.Sel.Name != "PasswordHash" {
					continue
				}
				if of, ok := s.X.(*ast.Ident); ok && slices.Contains([]string{"c", "nu", "im"}, of.Name) {
					continue // credentials that were read, and a new user's
				}
				list = append(list, "a patch's password")
			}
		case *ast.CompositeLit:
			of, _ := n.Type.(*ast.Ident)
			switch {
			case of == nil:
			case of.Name == "chosenPassword" && len(n.Elts) > 0:
				list = append(list, "a chosenPassword")
			case of.Name == "UserPatch":
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok && kv.Key.(*ast.Ident).Name == "PasswordHash" {
						list = append(list, "a patch's password")
					}
				}
			}
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				break
			}
			if of, ok := s.X.(*ast.SelectorExpr); ok && of.Sel.Name == "store" && s.Sel.Name == "DeleteUser" {
				list = append(list, "store.DeleteUser")
			}
			if s.Sel.Name == "beforePasswordChange" || s.Sel.Name == "beforeDelete" {
				list = append(list, s.Sel.Name)
			}
		}
		return true
	})
	return list
}
