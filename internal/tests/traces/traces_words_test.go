package traces_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/authmount/auth/internal/harness"
)

// words records values in the same words each time: a random value gets a name by its order,
// a secret or highly random value is only mentioned, and times are relative to now.
type words struct {
	now   time.Time
	names map[string]string
	zeros bool // zero members are recorded, too
}

var (
	traceID     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	traceJWT    = regexp.MustCompile(`eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+`)
	traceRandom = regexp.MustCompile(`[\w-]{22,}`)
	traceBytes  = regexp.MustCompile(`^[A-Za-z0-9+/]{16,}={0,2}$`)
	traceCode   = regexp.MustCompile(`\b[0-9]{6}\b`)
	traceLocal  = regexp.MustCompile(`127\.0\.0\.1(:|%3A)\d+`)
	traceSum    = regexp.MustCompile(`sha256-[^']+`)
	traceUpper  = regexp.MustCompile(`[A-Z0-9]`)
)

// text is a string in words.
func (w *words) text(s string) any {
	if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return w.time(at)
	}
	if strings.HasPrefix(s, "$argon2id$") {
		return "<password " + harness.PasswordOf(s) + ">"
	}
	if traceJWT.FindString(s) == s && s != "" {
		raw, err := base64.RawURLEncoding.DecodeString(strings.Split(s, ".")[1])
		var claims map[string]any
		if err == nil && json.Unmarshal(raw, &claims) == nil {
			return map[string]any{"jwt": w.value("", claims)}
		}
	}
	if traceBytes.MatchString(s) && len(s)%4 == 0 {
		raw, err := base64.StdEncoding.DecodeString(s)
		var within map[string]any
		switch {
		case err == nil && json.Unmarshal(raw, &within) == nil:
			return w.value("", within)
		case err == nil:
			return "<bytes>"
		}
	}
	s = traceSum.ReplaceAllString(s, "<sum>")
	s = traceLocal.ReplaceAllString(s, "localhost")
	s = traceJWT.ReplaceAllString(s, "<jwt>")
	s = traceID.ReplaceAllStringFunc(s, func(id string) string { return w.name("id", id) })
	return traceRandom.ReplaceAllStringFunc(s, func(run string) string {
		if traceUpper.MatchString(run) {
			return "<random>"
		}
		return run
	})
}

// name returns the name of a random value that may come again.
func (w *words) name(what, of string) string {
	if w.names[of] == "" {
		w.names[of] = fmt.Sprintf("<%s %d>", what, len(w.names)+1)
	}
	return w.names[of]
}

func (w *words) time(at time.Time) string {
	switch {
	case at.IsZero():
		return ""
	case at.Year() > w.now.Year()+100:
		return at.UTC().Format("<never 2006-01-02>")
	}
	return fmt.Sprintf("<now%+v>", at.Sub(w.now))
}

// value is a value decoded from JSON in words, without zero values. key is the name of the
// member, if the value is one.
func (w *words) value(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if kept := w.value(k, v[k]); kept != nil || w.zeros {
				out[w.text(k).(string)] = kept
			}
		}
		if len(out) == 0 && !w.zeros {
			return nil
		}
		return out
	case []any:
		if key == "Devices" { // seen at one time, they come in any order
			slices.SortStableFunc(v, func(a, b any) int { return strings.Compare(order(a), order(b)) })
		}
		out := make([]any, 0, len(v))
		for _, e := range v {
			out = append(out, w.value(key, e))
		}
		if len(out) == 0 && !w.zeros {
			return nil
		}
		return out
	case string:
		switch strings.ToLower(key) {
		case "secret", "uri", "qr_code", "recovery_codes", "code":
			if len(v) < 22 || key != "code" { // errors have codes, too
				v = traceSecret(key, v)
			}
		}
		if text := w.text(v); text != "" || w.zeros {
			return text
		}
		return nil
	case float64:
		if at := time.Unix(int64(v), 0); at.Sub(w.now).Abs() < 400*24*time.Hour {
			return w.time(at)
		}
		if v == 0 && !w.zeros {
			return nil
		}
		return v
	case bool:
		if !v && !w.zeros {
			return nil
		}
	}
	return v
}

// order is by which devices are sorted: the sequence.
func order(device any) string {
	m, _ := device.(map[string]any)
	return fmt.Sprint(m["sequence"])
}

// traceSecret replaces a short secret, which differs each time.
func traceSecret(key, v string) string {
	if key == "code" || key == "Code" {
		return traceCode.ReplaceAllString(v, "<code>")
	}
	if v == "" {
		return v
	}
	return "<secret>"
}

// line is anything that has a form in JSON, in words and on one line.
func (w *words) line(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return w.json(raw)
}

// json is line for text that is JSON already; other text stays text.
func (w *words) json(raw []byte) string {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return fmt.Sprint(w.text(string(raw)))
	}
	return plainJSON(w.value("", v))
}

// plainJSON writes a value decoded from JSON, with < and > as they are.
func plainJSON(v any) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}

// traceRows returns the elements of a list of a snapshot, by a key of each.
func traceRows(list any) map[string]any {
	rows := map[string]any{}
	elements, _ := list.([]any)
	for _, e := range elements {
		key := plainJSON(e)
		if m, ok := e.(map[string]any); ok {
			if m["Metric"] != nil {
				key = fmt.Sprint(m["Metric"], m["Label"], m["At"])
			}
			for _, of := range []map[string]any{m, within(m, "user"), within(m, "session"), within(m, "User"), within(m, "Session")} {
				for _, name := range []string{"Hash", "hash", "id", "ID"} {
					if id, ok := of[name].(string); ok && id != "" {
						key = id
					}
				}
			}
		}
		for n := 2; rows[key] != nil; n++ {
			key += " " + strconv.Itoa(n)
		}
		rows[key] = e
	}
	return rows
}

func within(m map[string]any, name string) map[string]any {
	in, _ := m[name].(map[string]any)
	return in
}

// leaves are the members of a row with their values, by path.
func leaves(path string, v any, into map[string]any) map[string]any {
	if m, ok := v.(map[string]any); ok {
		for k, e := range m {
			leaves(path+"."+k, e, into)
		}
		return into
	}
	into[path] = v
	return into
}

// difference returns the differences between two snapshots of a store: a line for each new
// or deleted row and each changed member of a remaining one.
func (w *words) difference(was, is map[string]any) (lines []string) {
	names := map[string]any{}
	maps.Copy(names, was)
	maps.Copy(names, is)
	blank := func(v any) string { // the sort key of rows, without their ids
		return nameless.ReplaceAllString(plainJSON((&words{now: w.now, names: map[string]string{}}).value("", v)), "")
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, after := traceRows(was[name]), traceRows(is[name])
		if len(before)+len(after) == 0 {
			before, after = map[string]any{"": was[name]}, map[string]any{"": is[name]}
		}
		order := map[string]string{} // of the changed rows
		for k, v := range after {
			if !reflect.DeepEqual(before[k], v) {
				order[k] = blank(v) + blank(before[k])
			}
		}
		for k, v := range before {
			if after[k] == nil && v != nil {
				order[k] = blank(v)
			}
		}
		keys := slices.SortedFunc(maps.Keys(order), func(a, b string) int { return strings.Compare(order[a], order[b]) })
		for _, k := range keys {
			switch {
			case before[k] == nil:
				lines = append(lines, "+ "+name+" "+plainJSON(w.value("", after[k])))
			case after[k] == nil:
				lines = append(lines, "- "+name+" "+plainJSON(w.value("", before[k])))
			default:
				lines = append(lines, w.changes(name, k, before[k], after[k])...)
			}
		}
	}
	return lines
}

// nameless are the names in words, by which nothing is to be sorted.
var nameless = regexp.MustCompile(`<id \d+>`)

func (w *words) changes(name, id string, was, is any) (lines []string) {
	before, after := leaves("", was, map[string]any{}), leaves("", is, map[string]any{})
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if _, still := after[path]; !still {
			after[path] = nil
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if a, b := plainJSON(before[path]), plainJSON(after[path]); a != b {
			key := path[strings.LastIndexByte(path, '.')+1:]
			lines = append(lines, fmt.Sprintf("~ %s %v%s: %s → %s", name, w.text(id), path, plainJSON(w.value(key, before[path])), plainJSON(w.value(key, after[path]))))
		}
	}
	return lines
}
