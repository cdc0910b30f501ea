package admin_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
)

var (
	placeholder = regexp.MustCompile(`\$[a-z][\w.]*\w`)
	anyID       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	cursorIn    = regexp.MustCompile(`"next_cursor":"([^"]*)"`)
	randomText  = regexp.MustCompile(`[A-Za-z0-9_-]{20,}`)
	digits      = regexp.MustCompile(`"code":"\d{6}"`)
	onlyWords   = regexp.MustCompile(`^[a-z_-]+$`)
)

// filled replaces $names by ids.
func (l *ledger) filled(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(name string) string {
		id, ok := l.ids[name[1:]]
		if !ok {
			return name
		}
		return id
	})
}

// plain writes names in place of ids, and omits random values.
func (l *ledger) plain(text string) string {
	text = cursorIn.ReplaceAllStringFunc(text, func(found string) string {
		raw, err := base64.RawURLEncoding.DecodeString(cursorIn.FindStringSubmatch(found)[1])
		if err != nil {
			return found
		}
		return `"next_cursor":` + string(raw)
	})
	text = anyID.ReplaceAllStringFunc(text, func(id string) string {
		name, ok := l.names[id]
		if !ok {
			name = fmt.Sprint("id", len(l.names))
			l.call(name, id)
		}
		return "<" + name + ">"
	})
	text = digits.ReplaceAllString(text, `"code":"<digits>"`)
	return randomText.ReplaceAllStringFunc(text, func(s string) string {
		if onlyWords.MatchString(s) {
			return s
		}
		return "<random>"
	})
}

// write adds a line.
func (l *ledger) write(what, text string) {
	l.text.WriteString(what + " " + l.plain(text) + "\n")
}

// terse is a value in JSON without its empty members.
func terse(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var all any
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(withoutEmpty(all))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, m := range v {
			if m = withoutEmpty(m); m == nil || m == "" {
				delete(v, name)
			} else {
				v[name] = m
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return v
}
