package outbox

import (
	"strings"
	"testing"
)

// Operators' texts belong to a kind of mail and a language, and have no link, no header
// and nothing invisible.
func TestOperatorsTexts(t *testing.T) {
	for name, texts := range map[string][]string{
		"footer":             {"Notes Ltd", "a\x00b", "\x00", "a\tb", "see evil\u2024com", "open 1.2.3.4/x", "call tel:+15551234567", "see www.evil.test", "Come to evil.example now", "ada@evil。example"},
		"footer.de":          {"Notizen GmbH"},
		"magic_link.subject": {strings.Repeat("a", maxMailSubject), strings.Repeat("a", maxMailSubject+1), "a\r\nBcc: b@c.test", "Win at evil.example"},
		"magic_link.intro":   {"We have moved.\nAll <b>stays</b>.", "", " x", "\u202efdp", "Go to HTTPS://evil.test", strings.Repeat("x", maxMailText+1)},
	} {
		for i, text := range texts { // the first is valid
			if err := CheckTexts(map[string]string{name: text}); (err == nil) != (i == 0) {
				t.Errorf("%s, %.40q: %v", name, text, err)
			}
		}
	}
	for _, name := range []string{"", "gone.intro", "phone_code.intro", "magic_link", "magic_link.body", "footer.", "footer.not a language", "footer.de.at"} {
		if CheckTexts(map[string]string{"footer": "Notes Ltd", name: "x"}) == nil {
			t.Errorf("there is no text %q", name)
		}
	}
}
