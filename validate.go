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

// Bounds of what people say of themselves.
const (
	maxName     = 200
	maxMetadata = 16 << 10
)

// cleanName is what every name goes through that anybody gives. It trims, brings
// to NFC and leaves out what does not show, and refuses what could not be
// printed on one line, or would turn the direction of what stands beside it.
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

// checkMetadata bounds metadata and keeps out U+0000, which Postgres cannot
// hold.
func checkMetadata(m map[string]any) error {
	b, err := json.Marshal(m)
	if err != nil {
		return errors.New("is not a JSON object")
	}
	if len(b)+writtenOut(b) > maxMetadata {
		return errors.New("is larger than 16 KiB")
	}
	if strings.Contains(strings.ReplaceAll(string(b), `\\`, ""), `\u0000`) {
		return errors.New("has a null character")
	}
	return nil
}

var exponent = regexp.MustCompile(`[0-9][eE][+-]?[0-9]`)

// writtenOut is by how many bytes JSON grows where numbers are kept without an exponent,
// as Postgres does: 5e-324 has 326 then.
func writtenOut(text []byte) (more int) {
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
			return maxMetadata // which no float64 holds
		}
		more += max(0, len(strconv.FormatFloat(f, 'f', -1, 64))-len(n))
	}
}

// isLine tells whether a text has no control characters, and could be printed
// and kept anywhere.
func isLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// isRole tells whether a role can have a name.
func isRole(name string) bool {
	return name != "" && isLine(name)
}

// isID tells whether s can be an id, before a store is asked.
func isID(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id.String() == s
}
