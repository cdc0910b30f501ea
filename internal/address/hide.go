package address

import (
	"errors"
	"regexp"
	"strings"
)

// emailPattern matches email addresses in the text of a server's error.
var emailPattern = regexp.MustCompile(`[^\s<>()\[\]"',;:]+@[^\s<>()\[\]"',;:]+`)

// Hide masks the recipient in an error about a message, because servers often quote the
// address. The error still matches the same targets with errors.Is, but its type is
// hidden, because it could show the address.
func Hide(err error, to string) error {
	if err == nil {
		return nil
	}
	var done *maskedError
	if errors.As(err, &done) {
		return err
	}
	return &maskedError{HideIn(err.Error(), to), err}
}

// HideIn masks an email address or phone number, and all other email addresses, in a
// text.
func HideIn(text, to string) string {
	if digits := strings.TrimPrefix(to, "+"); digits != to {
		text = replaceFold(strings.ReplaceAll(text, to, Mask(to)), digits, Mask(to))
	} else if to != "" {
		text = replaceFold(text, to, Mask(to))
	}
	return emailPattern.ReplaceAllStringFunc(text, Mask)
}

// replaceFold replaces a word regardless of case.
func replaceFold(text, old, masked string) string {
	return regexp.MustCompile(`(?i)`+regexp.QuoteMeta(old)).ReplaceAllLiteralString(text, masked)
}

type maskedError struct {
	text string
	err  error
}

func (h *maskedError) Error() string { return h.text }

// Is matches the original error.
func (h *maskedError) Is(target error) bool { return errors.Is(h.err, target) }
