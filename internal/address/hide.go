package address

import (
	"errors"
	"regexp"
	"strings"
)

// anAddress is what looks like an e-mail address in a server's prose.
var anAddress = regexp.MustCompile(`[^\s<>()\[\]"',;:]+@[^\s<>()\[\]"',;:]+`)

// Hide makes an error about a message to somebody one that does not show whom: a
// server's refusal often quotes the address. What the error matches
// (errors.Is) stays; its type does not, because that would show it again.
func Hide(err error, to string) error {
	if err == nil {
		return nil
	}
	var done *hidden
	if errors.As(err, &done) {
		return err
	}
	return &hidden{HideIn(err.Error(), to), err}
}

// HideIn masks an address or number, and whatever else looks like an address, in
// a text.
func HideIn(text, to string) string {
	if digits := strings.TrimPrefix(to, "+"); digits != to {
		text = replaceFold(strings.ReplaceAll(text, to, Mask(to)), digits, Mask(to))
	} else if to != "" {
		text = replaceFold(text, to, Mask(to))
	}
	return anAddress.ReplaceAllStringFunc(text, Mask)
}

// replaceFold replaces a word whatever its case.
func replaceFold(text, old, masked string) string {
	return regexp.MustCompile(`(?i)`+regexp.QuoteMeta(old)).ReplaceAllLiteralString(text, masked)
}

type hidden struct {
	text string
	err  error
}

func (h *hidden) Error() string { return h.text }

// Is lets errors.Is look behind the text.
func (h *hidden) Is(target error) bool { return errors.Is(h.err, target) }
