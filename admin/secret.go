package admin

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is the text of an API key. Only Reveal returns it; it is never printed, logged
// or encoded. The zero Secret is none.
type Secret struct{ text *string } // a pointer, because printing a struct around it shows only that

const hidden = "[secret]"

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Format prints a placeholder for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// LogValue keeps the text out of logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText keeps the text out of JSON and other encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
