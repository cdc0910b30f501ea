package outbox

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/language"

	"github.com/authmount/auth/internal/visible"
	"github.com/authmount/auth/store"
)

// Operators can add texts to mails in addition to the templates (Settings.Texts).

// Limits of such texts: lengths in characters, and their number.
const (
	maxMailSubject = 150
	maxMailText    = 1000
	MaxTexts       = 200
)

// CheckTexts checks the texts: their names are those of mails, and they contain nothing
// that could disguise the mail, start a header or lead to another site.
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
	kind, rest, _ := strings.Cut(name, ".")
	limit := maxMailText
	if kind != "footer" {
		var part string
		part, rest, _ = strings.Cut(rest, ".")
		if !slices.Contains(store.Kinds(), store.Kind(kind)) || textOnly(store.Kind(kind)) || part != "subject" && part != "intro" {
			return errors.New("is not the name of a mail text: use a kind with .subject or .intro, or footer")
		}
		if part == "subject" {
			if limit = maxMailSubject; visible.Line(text) != text {
				return errors.New("must be one line of visible text")
			}
		}
	}
	if strings.HasSuffix(name, ".") || rest != "" && !isLanguage(rest) {
		return errors.New("names no valid language")
	}
	switch n := len([]rune(text)); {
	case n == 0 || n > limit:
		return fmt.Errorf("must have 1 to %d characters", limit)
	case strings.TrimSpace(text) != text || !isVisibleText(text):
		return errors.New("must be visible text without spaces around it")
	case linkPattern.MatchString(plainDots(text)):
		return errors.New("must not contain links or texts that mail programs turn into links")
	}
	return nil
}

// linkPattern matches links, and host names, which mail programs turn into links. Host names
// have letters with combining marks in many scripts, and symbols such as emoji.
var linkPattern = regexp.MustCompile(`(?i)://|www\.|[\pL\pM\pN\pS-]\.[\pL\pM\pS][\pL\pM\pN\pS-]|\b\d{1,3}(?:\.\d{1,3}){3}\b|\b(?:tel|sms|mailto):`)

// plainDots replaces the characters that host names treat as a full stop (UTS #46), and
// the similar leader, by full stops.
func plainDots(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\u3002', '\uFF0E', '\uFF61', '\u2024':
			return '.'
		}
		return r
	}, s)
}

// isLanguage reports whether a text is a language tag that templates can have in their
// names.
func isLanguage(s string) bool {
	_, err := language.Parse(s)
	return err == nil && len(s) <= 16
}

// isVisibleText reports whether a text has only visible characters and line breaks.
func isVisibleText(s string) bool {
	return visible.Text(s) == s && !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && unicode.IsControl(r) })
}

// SafeName returns "" for a name that could contain a message or a link. Anyone can sign
// up with another person's email address, and that person reads the name.
func SafeName(s string) string {
	s = visible.Line(s)
	if len([]rune(s)) > 60 || strings.ContainsAny(s, "/\\@:<>[](){}%$=&#!?\"") || strings.Contains(strings.ToLower(s), "www") {
		return ""
	}
	dotted := plainDots(s)
	for i := 0; i+2 < len(dotted); i++ { // "evil.com": mail programs turn it into a link
		if dotted[i] == '.' && dotted[i+1] != ' ' && i > 0 && dotted[i-1] != ' ' {
			return ""
		}
	}
	return s
}

// SafeRoles returns the names of roles for a reader, without unsafe ones: an application may
// name them as it likes.
func SafeRoles(roles []string) string {
	var safe []string
	for _, r := range roles {
		if r = SafeName(r); r != "" {
			safe = append(safe, r)
		}
	}
	return strings.Join(safe, ", ")
}
