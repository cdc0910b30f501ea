package outbox

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"github.com/authmount/auth/internal/visible"
	"github.com/authmount/auth/store"
)

// What operators may have mails say besides their templates (Settings.Texts).

// How long such texts may be, in characters, and how many there may be.
const (
	maxMailSubject = 150
	maxMailText    = 1000
	MaxTexts       = 200
)

// CheckTexts judges such texts: their names are those of mails, and they hold
// nothing that could disguise, begin a header, or lead anywhere.
func CheckTexts(texts map[string]string) error {
	if len(texts) > MaxTexts {
		return fmt.Errorf("has more than %d texts", MaxTexts)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := checkText(name, texts[name]); err != nil {
			return fmt.Errorf("%.64q %w", name, err)
		}
	}
	return nil
}

func checkText(name, text string) error {
	what, rest, _ := strings.Cut(name, ".")
	most := maxMailText
	if what != "footer" {
		var part string
		part, rest, _ = strings.Cut(rest, ".")
		if !slices.Contains(store.Kinds(), store.Kind(what)) || textOnly(store.Kind(what)) || part != "subject" && part != "intro" {
			return errors.New("is no text of a mail: a kind with .subject or .intro, or footer")
		}
		if part == "subject" {
			if most = maxMailSubject; visible.Line(text) != text {
				return errors.New("has to be one line of visible text")
			}
		}
	}
	if strings.HasSuffix(name, ".") || rest != "" && !isLanguage(rest) {
		return errors.New("names no language")
	}
	switch n := len([]rune(text)); {
	case n == 0 || n > most:
		return fmt.Errorf("has to have 1 to %d characters", most)
	case strings.TrimSpace(text) != text || !onlyLines(text):
		return errors.New("has to be visible text, without spaces around it")
	case linked.MatchString(plainDots(text)):
		return errors.New("may hold no links, nor what mail programs make links of")
	}
	return nil
}

// linked finds links, and names of hosts, which mail programs make links of.
var linked = regexp.MustCompile(`(?i)://|www\.|[\pL\pN-]\.\pL{2,}|\b\d{1,3}(?:\.\d{1,3}){3}\b|\b(?:tel|sms|mailto):`)

// plainDots puts a full stop for what names of hosts take for one (UTS #46), and for the
// leader that looks like it.
func plainDots(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\u3002', '\uFF0E', '\uFF61', '\u2024':
			return '.'
		}
		return r
	}, s)
}

// isLanguage tells whether a text is a language as templates are named by.
func isLanguage(s string) bool {
	_, err := language.Parse(s)
	return err == nil && len(s) <= 16
}

// onlyLines tells whether a text is lines of visible characters.
func onlyLines(s string) bool {
	for _, r := range s {
		if r != '\n' && !visible.Rune(r) {
			return false
		}
	}
	return true
}

// SafeName leaves out a name that is no name: whoever signs up with a stranger's
// address chooses the name that the stranger reads, and must not be able to put
// a message or a link there.
func SafeName(s string) string {
	s = visible.Line(s)
	if len([]rune(s)) > 60 || strings.ContainsAny(s, "/\\@:<>[](){}%$=&#!?\"") || strings.Contains(strings.ToLower(s), "www") {
		return ""
	}
	dotted := plainDots(s)
	for i := 0; i+2 < len(dotted); i++ { // "evil.com": mail clients make links of it
		if dotted[i] == '.' && dotted[i+1] != ' ' && i > 0 && dotted[i-1] != ' ' {
			return ""
		}
	}
	return s
}
