// Package address judges e-mail addresses and phone numbers, brings them to the
// form that is kept, and masks them for screens and logs.
package address

import (
	"errors"
	"net/mail"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// What is wrong with an address, in words that go on after its field's name.
var (
	ErrEmail = errors.New("is not an e-mail address")
	ErrPhone = errors.New("is not a phone number with country code, such as +4930123456")
)

// EmailKey is the form in which addresses are compared: two addresses are the
// same if and only if their keys are equal.
func EmailKey(email string) string {
	return norm.NFC.String(strings.ToLower(norm.NFC.String(email)))
}

// NormalizeEmail checks one bare address strictly and returns the form that is
// kept: NFC, the domain lower-cased and IDNA-mapped to ASCII (RFC 5891), the
// local part's case as given. Display names, comments, quoted local parts,
// address literals, lists, control and bidirectional characters are ErrEmail.
func NormalizeEmail(email string) (string, error) {
	email = norm.NFC.String(strings.TrimSpace(email))
	if len(email) > 254 || !utf8.ValidString(email) || strings.Count(email, "@") != 1 {
		return "", ErrEmail
	}
	local, domain, _ := strings.Cut(email, "@")
	if local == "" || len(local) > 64 || strings.ContainsAny(local, " \"(),:;<>[]\\") ||
		strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, "..") {
		return "", ErrEmail
	}
	for _, r := range email {
		if unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError {
			return "", ErrEmail
		}
	}
	domain, err := idna.Lookup.ToASCII(domain)
	if err != nil || !strings.Contains(domain, ".") || strings.HasSuffix(domain, ".") || len(domain) > 253 {
		return "", ErrEmail
	}
	for _, label := range strings.Split(domain, ".") {
		if label == "" || len(label) > 63 {
			return "", ErrEmail
		}
	}
	email = local + "@" + strings.ToLower(domain)
	if parsed, err := mail.ParseAddress(email); err != nil || parsed.Address != email || parsed.Name != "" {
		return "", ErrEmail
	}
	return email, nil
}

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

// NormalizePhone brings a number to E.164. Spaces, hyphens, dots, slashes and
// parentheses are left out; a number without its country code is ErrPhone.
func NormalizePhone(phone string) (string, error) {
	phone = strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -./()\u00a0", r) {
			return -1
		}
		return r
	}, strings.TrimSpace(phone))
	if !e164.MatchString(phone) {
		return "", ErrPhone
	}
	return phone, nil
}

// Mask hides most of an e-mail address or phone number from whoever looks at
// the screen or reads the log.
func Mask(to string) string {
	if strings.Contains(to, "@") {
		return MaskEmail(to)
	}
	return "•••" + to[max(0, len(to)-2):]
}

// MaskEmail is Mask for what should be an e-mail address, and "" if it is none.
func MaskEmail(email string) string {
	local, domain, ok := strings.Cut(email, "@")
	if !ok {
		return ""
	}
	name, tld := domain, ""
	if i := strings.LastIndexByte(domain, '.'); i > 0 {
		name, tld = domain[:i], domain[i:]
	}
	return maskWord(local) + "@" + maskWord(name) + tld
}

func maskWord(s string) string {
	r := []rune(s)
	switch len(r) {
	case 0:
		return ""
	case 1, 2:
		return string(r[:1]) + "•••"
	}
	return string(r[:1]) + "•••" + string(r[len(r)-1:])
}
