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

	"github.com/authmount/auth/internal/visible"
)

// What is wrong with an address, in words that go on after its field's name.
var (
	ErrEmail = errors.New("is not an e-mail address")
	ErrPhone = errors.New("is not a phone number with country code, such as +4930123456")
)

// EmailKey is the form in which addresses are compared: two addresses are the
// same if and only if their keys are equal. It is NormalizeEmail's form, under
// Unicode's simple case folding, which knows no locale: İ is no variant of i. The
// key of what NormalizeEmail refuses is equal to the key of no address.
func EmailKey(email string) string {
	if isASCII(email) { // nothing to map but case
		return strings.ToLower(strings.TrimSpace(email))
	}
	normal, err := NormalizeEmail(email)
	if err != nil {
		return strings.ToValidUTF8(email, "\ufffd") // what stores can take
	}
	local, domain, _ := strings.Cut(normal, "@")
	return foldText(local) + "@" + domain
}

// NormalizeEmail checks one bare address strictly and returns the form that is
// kept: NFC, the domain lower-cased and IDNA-mapped to ASCII (RFC 5891), the
// local part's case as given. Display names, comments, quoted local parts,
// address literals, lists, encoded words, control, bidirectional and invisible
// characters are ErrEmail, and so is a local part that mixes scripts, is not in
// NFKC, or looks like another one in ASCII (UTS #39, section 3.3): its letters
// may be of one script; its digits are ASCII.
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

// normalLocal judges a local part and brings it to NFC. The bounds hold for its
// key, too.
func normalLocal(local string) (string, bool) {
	if strings.ContainsFunc(local, strange) {
		return "", false
	}
	local = norm.NFC.String(local)
	if local == "" || len(local) > maxLocal || strings.ContainsAny(local, " \"(),:;<>[]\\") || strings.Contains(local, "=?") ||
		strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, "..") {
		return "", false
	}
	return local, isASCII(local) || (len(foldText(local)) <= maxLocal && internationalOK(local))
}

// The longest addresses and local parts (RFC 5321, 4.5.3.1), in bytes.
const (
	maxEmail = 254
	maxLocal = 64
)

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
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
