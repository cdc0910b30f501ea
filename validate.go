package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"

	"github.com/authmount/auth/internal/visible"
)

// Limits of users' names and metadata.
const (
	maxName     = 200
	maxMetadata = 16 << 10
)

// cleanName normalises and checks any name. It trims it, converts it to NFC and removes
// invisible characters. It refuses names that do not fit on one line, or change the
// text direction of their surroundings.
func cleanName(s string) (string, error) {
	s = strings.TrimSpace(s)
	for _, r := range s {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || r == utf8.RuneError {
			return "", errors.New("has characters that cannot be printed")
		}
	}
	s = norm.NFC.String(strings.TrimSpace(visible.Text(s)))
	if utf8.RuneCountInString(s) > maxName {
		return "", errors.New("is too long")
	}
	return s, nil
}

// checkMetadata limits metadata and refuses U+0000, which Postgres cannot store.
func checkMetadata(m map[string]any) error {
	b, err := json.Marshal(m)
	if err != nil {
		return errors.New("is not a JSON object")
	}
	if len(b)+expandedSize(b) > maxMetadata {
		return errors.New("is larger than 16 KiB")
	}
	if strings.Contains(strings.ReplaceAll(string(b), `\\`, ""), `\u0000`) {
		return errors.New("has a null character")
	}
	return nil
}

var exponent = regexp.MustCompile(`[0-9][eE][+-]?[0-9]`)

// expandedSize returns the number of bytes by which JSON grows if numbers have no
// exponent, as in Postgres: 5e-324 has 326 then.
func expandedSize(text []byte) (more int) {
	if !exponent.Match(text) {
		return 0
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return more
		}
		n, ok := token.(json.Number)
		if !ok || !strings.ContainsAny(n.String(), "eE") {
			continue
		}
		f, err := n.Float64()
		if err != nil {
			return maxMetadata // too large for a float64
		}
		more += max(0, len(strconv.FormatFloat(f, 'f', -1, 64))-len(n))
	}
}

// isLine reports whether a text is valid UTF-8 without control characters.
func isLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// isRole reports whether name can be the name of a role.
func isRole(name string) bool {
	return name != "" && isLine(name)
}

// isID reports whether s can be an id, before the store is read.
func isID(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id.String() == s
}
