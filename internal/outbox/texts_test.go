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

// Host names in every script are links to mail programs: with combining marks, with symbols,
// and with marks in the last part. Sentences without a space after a full stop are refused
// too, and numbers and abbreviations are not.
func TestTextsWithHostNames(t *testing.T) {
	for _, s := range []string{
		"Pay at evil.भारत today", "Pay at i❤.ws today", "Pay at cafe\u0301.com today", "Pay at evil.சிங்கப்பூர் now", "Pay at भारत.भारत now",
		"Pay at हिन्दी。भारत", "Pay at x.xn--h2brj9c", "Pay at café.com", "Pay at i\u2764\ufe0f.ws", "Pay at evil.☕☕", "Pay at evil.\u0301com",
	} {
		if err := CheckTexts(map[string]string{"footer": s}); err == nil {
			t.Errorf("accepted: %q", s)
		}
	}
	for _, s := range []string{"Notes Ltd. Berlin", "Costs 3.50 € or $4.99", "e.g. tea, i.e. at 5 p.m. daily", "नमस्ते। स्वागत है.", "Version 1.2.3 …", "I ❤ tea. You too?"} {
		if err := CheckTexts(map[string]string{"footer": s}); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
}
