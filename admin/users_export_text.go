package admin

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Exports of accounts write JSON and table cells in the form of encoding/json and
// encoding/csv, without reflection and an allocation for each value. (Exports of the
// audit log have fewer cells and use the packages.)

func appendFlag(to []byte, v bool) []byte {
	if v {
		return append(to, "true"...)
	}
	return append(to, "false"...)
}

// appendText appends a text as JSON, null if it is empty. Most need no escapes.
func appendText(to []byte, s string) []byte {
	if s == "" {
		return append(to, "null"...)
	}
	return appendString(to, s)
}

func appendString(to []byte, s string) []byte {
	to = append(to, '"')
	if isPlain(s) {
		return append(append(to, s...), '"')
	}
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			to = appendRune(to, r, n)
			i += n
			continue
		}
		if at := strings.IndexByte("\b\f\n\r\t\"\\", c); at >= 0 {
			to = append(to, '\\', `bfnrt"\`[at])
		} else {
			to = appendASCII(to, c)
		}
		i++
	}
	return append(to, '"')
}

// appendASCII appends an ASCII character that has no escape of one letter.
func appendASCII(to []byte, c byte) []byte {
	if plain[c] || c == 0x7f {
		return append(to, c)
	}
	return append(to, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

// appendRune appends a character of n bytes beyond ASCII. It escapes two that end a line
// in JavaScript.
func appendRune(to []byte, r rune, n int) []byte {
	switch {
	case r == utf8.RuneError && n == 1: // invalid UTF-8
		return append(to, `\ufffd`...)
	case r == '\u2028' || r == '\u2029':
		return append(to, '\\', 'u', '2', '0', '2', hexDigits[r&0xf])
	}
	return utf8.AppendRune(to, r)
}

const hexDigits = "0123456789abcdef"

func appendTexts(to []byte, list []string) []byte {
	to = append(to, '[')
	for i, s := range list {
		if i > 0 {
			to = append(to, ',')
		}
		to = appendString(to, s)
	}
	return append(to, ']')
}

// isPlain reports whether a text needs no escapes in JSON.
func isPlain(s string) bool {
	for i := range len(s) {
		if !plain[s[i]] {
			return false
		}
	}
	return true
}

// plain are the characters that need no escape in a JSON string, also within HTML or a
// script.
var plain = func() (is [256]bool) {
	for c := byte(' '); c <= '~'; c++ {
		is[c] = !strings.ContainsRune(`"\<>&`, rune(c))
	}
	return is
}()

// appendStored appends stored JSON in the form of encoding/json: without spaces, and with
// characters escaped that are not plain.
func appendStored(to, text []byte) []byte {
	within := false // a string
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case plain[c]:
			if c != ' ' || within {
				to = append(to, c)
			}
		case c == '"':
			within = !within
			to = append(to, c)
		case c == '\\' && i+1 < len(text):
			to = append(to, c, text[i+1])
			i++
		case c < ' ': // between values
		case c < utf8.RuneSelf:
			to = appendASCII(to, c)
		default:
			r, n := utf8.DecodeRune(text[i:])
			to = appendRune(to, r, n)
			i += n
			continue
		}
		i++
	}
	return to
}

// appendCell appends a cell of a table, with quotes if necessary.
func appendCell[T string | []byte](to []byte, s T) []byte {
	if !quoted(s) {
		return append(to, s...)
	}
	to = append(to, '"')
	for i := range len(s) {
		if s[i] == '"' {
			to = append(to, '"')
		}
		to = append(to, s[i])
	}
	return append(to, '"')
}

// quoted reports whether a cell needs quotes, by the rules of encoding/csv.
func quoted[T string | []byte](s T) bool {
	switch {
	case len(s) == 0:
		return false
	case len(s) == 2 && s[0] == '\\' && s[1] == '.': // it ends the data of some databases
		return true
	case s[0] == ' ' || s[0] >= utf8.RuneSelf || s[0] < ' ':
		if r, _ := utf8.DecodeRune([]byte(s[:min(len(s), utf8.UTFMax)])); unicode.IsSpace(r) {
			return true
		}
	}
	for i := range len(s) {
		if c := s[i]; c == ',' || c == '"' || c == '\r' || c == '\n' {
			return true
		}
	}
	return false
}
