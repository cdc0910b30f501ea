package auth

import (
	"errors"

	"github.com/authmount/auth/internal/address"
)

// NormalizeEmail checks one bare address strictly and returns the form that is
// kept: NFC, the domain lower-cased and IDNA-mapped to ASCII (RFC 5891), the
// local part's case as given. Display names, comments, quoted local parts,
// address literals, lists, encoded words, control, bidirectional and invisible
// characters are refused, and so is a local part that another one could be taken
// for: its letters are in NFKC and of one script (UTS #39, section 3.3), its
// digits ASCII, and neither one letter nor the whole looks like ASCII.
func NormalizeEmail(email string) (string, error) { return address.NormalizeEmail(email) }

// maskEmail hides most of an address from whoever looks at the screen.
func maskEmail(email string) string { return address.MaskEmail(email) }

// maskAddress is maskEmail for phone numbers, too.
func maskAddress(to string) string { return address.Mask(to) }

// requiredEmail is NormalizeEmail for a field that must be there.
func requiredEmail(s string) (string, error) {
	if s == "" {
		return "", errors.New("is required")
	}
	return NormalizeEmail(s)
}
