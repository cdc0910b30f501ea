package pages_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pages"
)

// New detects a mistake anywhere in a template, also in parts that are shown to few
// visitors or after an error.
func TestTemplatesAreTriedWhole(t *testing.T) {
	a := authtest.New(t, auth.WithCookies(auth.CookieOptions{})).Auth
	var parts []string
	for in, of := range map[string]reflect.Type{"": reflect.TypeFor[pages.View](), "User.": reflect.TypeFor[pages.User](), "Settings.Methods.": reflect.TypeFor[auth.EnabledMethods]()} {
		for _, f := range reflect.VisibleFields(of) {
			if f.IsExported() && f.Name != "EmailVerified" { // the template shows the opposite
				parts = append(parts, in+f.Name)
			}
		}
	}
	for _, part := range parts {
		text := fmt.Sprintf(`{{define "title"}}{{end}}{{define "body"}}{{if .%s}}{{.Nonsense}}{{end}}{{end}}`, part)
		_, err := pages.New(a, pages.Options{Logo: "/logo.svg", Templates: fstest.MapFS{"sign_in.html": {Data: []byte(text)}}})
		if err == nil || !strings.Contains(err.Error(), "Nonsense") {
			t.Errorf("a mistake where there is a %s: %v", part, err)
		}
	}
}
