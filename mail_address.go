package auth

import (
	"errors"
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

var errBadEmail = errors.New("is not an e-mail address")

// EmailKey is the form in which addresses are compared: two addresses are the
// same account if and only if their keys are equal. Stores use it for lookups
// and uniqueness and never compare addresses otherwise.
func EmailKey(email string) string {
	return norm.NFC.String(strings.ToLower(norm.NFC.String(email)))
}

// NormalizeEmail checks one bare address strictly and returns the form that is
// kept: NFC, the domain lower-cased and IDNA-mapped to ASCII (RFC 5891), the
// local part's case as given. Display names, comments, quoted local parts,
// address literals, lists, control and bidirectional characters are refused.
func NormalizeEmail(email string) (string, error) {
	email = norm.NFC.String(strings.TrimSpace(email))
	if len(email) > 254 || !utf8.ValidString(email) || strings.Count(email, "@") != 1 {
		return "", errBadEmail
	}
	local, domain, _ := strings.Cut(email, "@")
	if local == "" || len(local) > 64 || strings.ContainsAny(local, " \"(),:;<>[]\\") ||
		strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, "..") {
		return "", errBadEmail
	}
	for _, r := range email {
		if unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError {
			return "", errBadEmail
		}
	}
	domain, err := idna.Lookup.ToASCII(domain)
	if err != nil || !strings.Contains(domain, ".") || strings.HasSuffix(domain, ".") || len(domain) > 253 {
		return "", errBadEmail
	}
	for _, label := range strings.Split(domain, ".") {
		if label == "" || len(label) > 63 {
			return "", errBadEmail
		}
	}
	email = local + "@" + strings.ToLower(domain)
	if parsed, err := mail.ParseAddress(email); err != nil || parsed.Address != email || parsed.Name != "" {
		return "", errBadEmail
	}
	return email, nil
}

// requiredEmail is NormalizeEmail for a field that must be there.
func requiredEmail(s string) (string, error) {
	if s == "" {
		return "", errors.New("is required")
	}
	return NormalizeEmail(s)
}
