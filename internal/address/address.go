// Package address validates and normalises email addresses and phone numbers, and masks
// them for screens and logs.
package address

import (
	"errors"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/authmount/auth/internal/visible"
)

// The errors of normalisation. Their texts follow the field's name.
var (
	ErrEmail = errors.New("is not an e-mail address")
	ErrPhone = errors.New("is not a phone number with country code, such as +4930123456")
)

// EmailKey returns the form in which email addresses are compared: two addresses are the
// same if and only if their keys are equal. It is NormalizeEmail's form under Unicode's
// simple case folding, which is independent of the locale: İ is not a variant of i. The
// key of an address that NormalizeEmail rejects differs from the key of every valid
// address.
func EmailKey(email string) string {
	if isASCII(email) { // only case to map
		return strings.ToLower(strings.TrimSpace(email))
	}
	normal, err := NormalizeEmail(email)
	if err != nil {
		return strings.ToValidUTF8(email, "\ufffd") // stores accept only valid UTF-8
	}
	local, domain, _ := strings.Cut(normal, "@")
	return foldText(local) + "@" + domain
}

// NormalizeEmail checks one bare email address strictly and returns its normal form: NFC,
// the domain in lower case and mapped to ASCII by IDNA (RFC 5891), the local part with
// its original case. It returns ErrEmail for display names, comments, quoted local parts,
// address literals, lists, encoded words, and control, bidirectional and invisible
// characters. It also returns ErrEmail for a local part that mixes scripts, is not in
// NFKC, or looks like an ASCII one (UTS #39, section 3.3): its letters may be of one
// script, its digits must be ASCII.
func NormalizeEmail(email string) (string, error) {
	email = strings.TrimSpace(email)
	if len(email) > maxEmail || !utf8.ValidString(email) || strings.Count(email, "@") != 1 {
		return "", ErrEmail
	}
	for _, r := range email {
		if unicode.IsControl(r) || unicode.IsSpace(r) || !visible.Rune(r) || r == utf8.RuneError {
			return "", ErrEmail
		}
	}
	local, domain, _ := strings.Cut(email, "@")
	local, ok := normalLocal(local)
	if !ok {
		return "", ErrEmail
	}
	domain, err := idna.Lookup.ToASCII(norm.NFC.String(domain))
	if err != nil || !strings.Contains(domain, ".") || strings.HasSuffix(domain, ".") || len(domain) > 253 {
		return "", ErrEmail
	}
	for _, label := range strings.Split(domain, ".") {
		if label == "" || len(label) > 63 {
			return "", ErrEmail
		}
	}
	email = local + "@" + strings.ToLower(domain)
	if len(email) > maxEmail {
		return "", ErrEmail
	}
	if parsed, err := mail.ParseAddress(email); err != nil || parsed.Address != email || parsed.Name != "" {
		return "", ErrEmail
	}
	return email, nil
}

// normalLocal checks a local part and returns it in NFC. The length limits also apply to
// its key.
func normalLocal(local string) (string, bool) {
	if strings.ContainsFunc(local, unacceptable) {
		return "", false
	}
	local = norm.NFC.String(local)
	if local == "" || len(local) > maxLocal || strings.ContainsAny(local, " \"(),:;<>[]\\") || strings.Contains(local, "=?") ||
		strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, "..") {
		return "", false
	}
	return local, isASCII(local) || (len(foldText(local)) <= maxLocal && validInternational(local))
}

// Length limits of email addresses and local parts in bytes (RFC 5321, section 4.5.3.1).
const (
	maxEmail = 254
	maxLocal = 64
)

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

// trunkZero matches a trunk prefix in parentheses after a country code, as in +49 (0)151.
var trunkZero = regexp.MustCompile(`^(\+[1-9][0-9]{0,2})\(0\)`)

// keepsZero are the country codes whose numbers begin with a zero that is no trunk prefix:
// Italy, Ivory Coast, Congo, San Marino (ITU-T E.164, national numbering plans).
var keepsZero = []string{"+39", "+225", "+242", "+378"}

// NormalizePhone returns a phone number in E.164. It removes spaces, invisible marks,
// hyphens, dots, slashes and parentheses, reads digits of any script, and drops a trunk
// prefix in parentheses after the country code. It does not know the numbering plans of
// countries. A number without a country code is ErrPhone.
func NormalizePhone(phone string) (string, error) {
	phone = strings.Map(func(r rune) rune {
		if r == '＋' {
			return '+'
		}
		if unicode.Is(unicode.Pd, r) || strings.ContainsRune("./", r) {
			return -1
		}
		return r
	}, Digits(strings.TrimSpace(phone)))
	if found := trunkZero.FindStringSubmatch(phone); found != nil && !slices.Contains(keepsZero, found[1]) {
		phone = strings.Replace(phone, "(0)", "", 1)
	}
	phone = strings.NewReplacer("(", "", ")", "").Replace(phone)
	if !e164.MatchString(phone) {
		return "", ErrPhone
	}
	return phone, nil
}

// Digits returns a text with the digits of every script in ASCII, and without spaces on the
// line and invisible marks, such as those that set the direction of copied numbers.
func Digits(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x80 && r != ' ' && r != '\t':
			return r
		case r == '\t' || unicode.In(r, unicode.Zs, unicode.Cf):
			return -1
		case unicode.Is(unicode.Nd, r):
			return '0' + digit(r)
		}
		return r
	}, s)
}

// Code returns a code as it was sent, from what a person typed or copied: Digits without
// hyphens.
func Code(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Pd, r) {
			return -1
		}
		return r
	}, Digits(s))
}

// FactorCode returns what a person typed as the code of a second factor: six digits of an
// authenticator app, or else a recovery code.
func FactorCode(s string) (totp, recovery string) {
	code := Code(s)
	if len(code) == 6 && strings.Trim(code, "0123456789") == "" {
		return code, ""
	}
	return "", strings.TrimSpace(s)
}

// digit returns the value of a decimal digit. Unicode's digits stand in runs from zero to
// nine (The Unicode Standard, section 4.6).
func digit(r rune) rune {
	for _, run := range unicode.Nd.R16 {
		if r >= rune(run.Lo) && r <= rune(run.Hi) {
			return (r - rune(run.Lo)) % 10
		}
	}
	for _, run := range unicode.Nd.R32 {
		if r >= rune(run.Lo) && r <= rune(run.Hi) { //nolint:gosec // code points fit
			return (r - rune(run.Lo)) % 10 //nolint:gosec // code points fit
		}
	}
	return 0
}

// Mask hides most of an email address or phone number for screens and logs.
func Mask(to string) string {
	if strings.Contains(to, "@") {
		return MaskEmail(to)
	}
	return "•••" + to[max(0, len(to)-2):]
}

// MaskEmail is Mask for an email address. It returns "" for other texts.
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
