package dashboard

import (
	"encoding/json"

	"github.com/authmount/auth/internal/wire"
)

// pretty returns a value as indented JSON.
func pretty(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return ""
	}
	return string(b)
}

// mergePatch returns the patch that turns one object into another (RFC 7396).
func mergePatch(from, to map[string]any) map[string]any {
	out := map[string]any{}
	for name := range from {
		if _, exists := to[name]; !exists {
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

// readObject reads an object as strictly as the endpoints do, which limits its depth.
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
