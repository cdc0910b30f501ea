package openapi

import (
	"maps"
	"slices"
	"strings"
)

// schema expands the shorthand of schemas. A string is a type or, with a capital, the name
// of a schema; a "?" after it allows null.
//
// Returned objects are closed by default: all properties are required, except those under
// "optional", and others are forbidden. Received objects have no such default.
func (b *builder) schema(v any, returned bool) any {
	switch v := v.(type) {
	case string:
		return b.named(v)
	case map[string]any:
		return b.object(v, returned)
	}
	return v // true or false
}

func (b *builder) named(name string) object {
	plain, null := strings.CutSuffix(name, "?")
	if plain == strings.ToLower(plain) {
		if null {
			return object{"type": []string{plain, "null"}}
		}
		return object{"type": plain}
	}
	if _, ok := b.doc.Components.Schemas[plain]; !ok {
		b.fault("there is no schema %q", plain)
	}
	ref := object{"$ref": "#/components/schemas/" + plain}
	if null {
		return object{"anyOf": []any{ref, object{"type": "null"}}}
	}
	return ref
}

func (b *builder) object(from object, returned bool) object {
	s := object{}
	for key, v := range from {
		switch key {
		case "properties":
			s[key] = b.properties(v, returned)
		case "items", "additionalProperties":
			s[key] = b.schema(v, returned)
		case "if", "then", "else", "not": // they constrain an object that is described elsewhere
			s[key] = b.schema(v, false)
		case "oneOf", "anyOf", "allOf":
			s[key] = b.list(v, returned)
		case "$ref":
			name, _ := v.(string)
			s[key] = b.named(name)[key]
		case "optional":
		default:
			s[key] = v
		}
	}
	props, _ := s["properties"].(object)
	if props == nil || !returned || s["required"] != nil || s["additionalProperties"] != nil {
		return s
	}
	optional, _ := from["optional"].([]any)
	required := []string{}
	for _, name := range sorted(props) {
		if !slices.Contains(optional, any(name)) {
			required = append(required, name)
		}
	}
	s["type"], s["required"], s["additionalProperties"] = "object", required, false
	return s
}

func (b *builder) properties(v any, returned bool) object {
	from, _ := v.(object)
	props := object{}
	for name, p := range from {
		props[name] = b.schema(p, returned)
	}
	return props
}

func (b *builder) list(v any, returned bool) []any {
	from, _ := v.([]any)
	var list []any
	for _, s := range from {
		list = append(list, b.schema(s, returned))
	}
	return list
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
