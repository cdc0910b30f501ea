// Package jsonvalue copies and compares the values that encoding/json decodes to.
package jsonvalue

import (
	"bytes"
	"encoding/json"
)

// CloneObject returns a deep copy of an object; nil for nil.
func CloneObject(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = clone(v)
	}
	return out
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return CloneObject(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = clone(e)
		}
		return out
	}
	return v
}

// Same reports whether two values have the same JSON. A value that JSON cannot encode
// equals no value.
func Same(a, b any) bool {
	x, err := json.Marshal(a)
	y, _ := json.Marshal(b) // nil on error, which equals no x
	return err == nil && bytes.Equal(x, y)
}
