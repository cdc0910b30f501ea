package admin

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is the text of an API key, which nothing prints, logs or encodes: Reveal alone
// tells it. The zero Secret is none.
type Secret struct{ text *string } // behind a pointer, which is all that printing a struct around it shows

const hidden = "[secret]"

// Reveal is the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Format prints that there is a secret, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// LogValue keeps the text out of the log.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText keeps the text out of JSON and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
