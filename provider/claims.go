package provider

import (
	"cmp"
	"strings"
)

// Claims are the claims of a verified ID token, or of the userinfo endpoint.
type Claims map[string]any

// Text returns a string claim, and "" for other claims.
func (c Claims) Text(name string) string {
	s, _ := c[name].(string)
	return s
}

// Flag returns a claim that some providers send as a boolean and others as a string. It
// is false for every other value, including the string "false". "True" is the spelling of
// providers that print a boolean in Python.
func (c Claims) Flag(name string) bool {
	switch v := c[name].(type) {
	case bool:
		return v
	case string:
		return v == "true" || v == "True" || v == "1"
	case float64:
		return v == 1
	}
	return false
}

// Profile reads the standard claims (OpenID Connect Core 1.0, section 5.1).
func (c Claims) Profile() Profile {
	return Profile{
		Subject: c.Text("sub"), Email: c.Text("email"), EmailVerified: c.Flag("email_verified"),
		FullName: cmp.Or(c.Text("name"), strings.TrimSpace(c.Text("given_name")+" "+c.Text("family_name"))),
	}
}
