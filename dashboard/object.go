package dashboard

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/authmount/auth/internal/wire"
)

// object is an answer of the wire.
type object map[string]any

func (o object) str(name string) string {
	switch v := o[name].(type) {
	case string:
		return v
	case nil:
		return ""
	case float64:
		b, err := json.Marshal(v)
		if err == nil {
			return string(b)
		}
	}
	return fmt.Sprint(o[name])
}

func (o object) flag(name string) bool {
	v, ok := o[name].(bool)
	return ok && v
}

func (o object) num(name string) int64 {
	v, ok := o[name].(float64)
	if !ok {
		return 0
	}
	return int64(v)
}

func (o object) time(name string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, o.str(name))
	if err != nil {
		return time.Time{}
	}
	return t
}

func (o object) of(name string) object {
	v, ok := o[name].(map[string]any)
	if !ok {
		return object{}
	}
	return v
}

func (o object) list(name string) []object {
	all, ok := o[name].([]any)
	if !ok {
		return nil
	}
	out := make([]object, 0, len(all))
	for _, v := range all {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func (o object) texts(name string) []string {
	all, ok := o[name].([]any)
	if !ok {
		return nil
	}
	out := make([]string, 0, len(all))
	for _, v := range all {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// label is what people call an account.
func (o object) label() string {
	for _, name := range []string{"email", "phone"} { // not the name, which may be somebody else's address
		if s := o.str(name); s != "" {
			return s
		}
	}
	return o.str("id")
}

// pretty is a value as people read JSON.
func pretty(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return ""
	}
	return string(b)
}

// mergePatch is what turns one object into another (RFC 7396).
func mergePatch(from, to map[string]any) map[string]any {
	out := map[string]any{}
	for name := range from {
		if _, stays := to[name]; !stays {
			out[name] = nil
		}
	}
	for name, v := range to {
		was, isObject := from[name].(map[string]any)
		if is, ok := v.(map[string]any); ok && isObject {
			out[name] = mergePatch(was, is)
			continue
		}
		out[name] = v
	}
	return out
}

// readObject reads an object as strictly as the endpoints do, so that one that is nested
// without end costs nothing.
func readObject(text string) (map[string]any, error) {
	members := map[string]json.RawMessage{}
	if err := wire.Unmarshal([]byte(text), &members); err != nil {
		return nil, err
	}
	o := make(map[string]any, len(members))
	for name, raw := range members {
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			return nil, err
		}
		o[name] = value
	}
	return o, nil
}
