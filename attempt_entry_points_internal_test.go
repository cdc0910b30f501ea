package auth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth/store"
)

// judging are the calls that tell whether somebody's secret was right.
var judging = []string{
	"passwords.verify", "TryCode", "UseFactor", "UseRecoveryCode", "RemoveFactor", // the last unless it is plainly shown no code
	"matchTOTP", "useTOTP", "useFactor", "useRecoveryCode", // which judge in a guess of their callers'
}

// No secret is judged but within guess, which draws before and settles after: a
// call that could tell whether one was right stands in a function literal that is
// handed to guess, or in a function that is itself such a call.
func TestSecretsAreJudgedInGuesses(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			for _, name := range judgedOutside(fn.Body) {
				if !slices.Contains(judging, fn.Name.Name) {
					t.Errorf("%s: %s calls %s outside of a guess", f.Name(), fn.Name.Name, name)
				}
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				found[called(n)]++
				return true
			})
		}
	}
	for _, name := range append([]string{"guess"}, judging...) {
		if found[name] == 0 {
			t.Errorf("nothing calls %s any more", name)
		}
	}
}

// judgedOutside names the judging calls that are not within a guess.
func judgedOutside(body ast.Node) (names []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		name := called(n)
		if name == "guess" {
			return false
		}
		if slices.Contains(judging, name) {
			names = append(names, name)
		}
		return true
	})
	return names
}

func called(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if s.Sel.Name == "RemoveFactor" && shownNoCode(call) {
		return ""
	}
	if of, ok := s.X.(*ast.SelectorExpr); ok && s.Sel.Name == "verify" { // many things are verified
		return of.Sel.Name + ".verify"
	}
	return s.Sel.Name
}

// shownNoCode tells whether a call is given a literal that names no Recovery.
func shownNoCode(call *ast.CallExpr) bool {
	if len(call.Args) == 0 {
		return false
	}
	given, ok := call.Args[len(call.Args)-1].(*ast.CompositeLit)
	if !ok {
		return false
	}
	return !slices.ContainsFunc(given.Elts, func(e ast.Expr) bool {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		name, ok := field.Key.(*ast.Ident)
		return !ok || name.Name == "Recovery"
	})
}

// Whatever method of a store is given a hash or step of something that somebody
// offered is known here: a short secret, which only a guess may judge, or 256
// random bits.
func TestStoresJudgeKnownSecrets(t *testing.T) {
	known := map[string]string{
		"TryCode": "guess", "UseFactor": "guess", "UseRecoveryCode": "guess", "RemoveFactor": "guess",
		"RedeemToken": "256 bits", "PeekToken": "256 bits", "PutRecoveryCodes": "new ones", "EnableFactor": "a step that judgeFirstCode found",
	}
	for _, i := range []reflect.Type{reflect.TypeFor[Store](), reflect.TypeFor[store.FactorStore](), reflect.TypeFor[store.Journal](), reflect.TypeFor[store.ProjectStore](), reflect.TypeFor[store.AdminStore]()} {
		for m := range i.NumMethod() {
			method := i.Method(m)
			for p := range method.Type.NumIn() {
				in := method.Type.In(p)
				secret := in == reflect.TypeFor[[]byte]()
				if in.Kind() == reflect.Struct {
					for _, field := range []string{"Hash", "Hashes", "State", "Code", "Secret", "Recovery"} {
						_, ok := in.FieldByName(field)
						secret = secret || ok
					}
				}
				if secret && known[method.Name] == "" {
					t.Errorf("%s.%s: what does it judge?", i.Name(), method.Name)
				}
				if known[method.Name] == "guess" && !slices.Contains(judging, method.Name) {
					t.Errorf("%s is not held to guesses", method.Name)
				}
			}
		}
	}
}
