// Package jsonvalue copies and compares the values that encoding/json decodes to.
package jsonvalue

import (
	"bytes"
	"encoding/json"
)

// CloneObject is a copy of an object that shares nothing with it; nil of nil.
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

// Same reports whether two values have the same JSON. A value without a JSON form
// equals nothing.
func Same(a, b any) bool {
	x, err := json.Marshal(a)
	y, _ := json.Marshal(b) // the JSON of a value without one is nil, which no x equals
	return err == nil && bytes.Equal(x, y)
}
