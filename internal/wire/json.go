package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"
)

// Unmarshal reads a JSON object into the struct that v points to. It is stricter than
// encoding/json, because two parsers that read one body differently are a security hole.
// Names must match exactly. Duplicate names, text after the object, invalid UTF-8, deep
// nesting and numbers beyond a float64 are errors. A *map[string]json.RawMessage receives
// all members, for callers that check names themselves. Unmarshal ignores names that the
// struct lacks; absent members and nulls do not change a field.
//
// Errors: ErrNotUTF8, ErrMalformed, ErrDuplicateName, ErrNesting, ErrTrailingData,
// ErrNotObject, a *FieldError.
func Unmarshal(body []byte, v any) error {
	members, err := membersOf(body)
	if err != nil {
		return err
	}
	if all, ok := v.(*map[string]json.RawMessage); ok {
		*all = make(map[string]json.RawMessage, len(members))
		for _, m := range members {
			(*all)[string(m.name)] = m.value
		}
		return nil
	}
	return fill(members, v)
}

// UnmarshalKnown is Unmarshal into a struct. It also returns the names that the struct
// lacks, sorted.
func UnmarshalKnown(body []byte, v any) (unknown []string, err error) {
	members, err := membersOf(body)
	if err != nil {
		return nil, err
	}
	known := fieldsOf(reflect.TypeOf(v).Elem())
	for _, m := range members {
		if _, ok := known[string(m.name)]; !ok {
			unknown = append(unknown, string(m.name))
		}
	}
	return unknown, fill(members, v)
}

// membersOf returns the members of a JSON object, sorted by name.
func membersOf(body []byte) ([]member, error) {
	if !utf8.Valid(body) {
		return nil, ErrNotUTF8
	}
	members, err := scan(body)
	if err == nil && !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		err = ErrNotObject
	}
	return members, err
}

// fill sets the fields of the struct that v points to, in the order of the struct.
func fill(members []member, v any) error {
	fields := reflect.ValueOf(v).Elem()
	known := fieldsOf(fields.Type())
	given := make([][]byte, fields.NumField())
	for _, m := range members {
		if i, ok := known[string(m.name)]; ok {
			given[i] = m.value
		}
	}
	for i, value := range given {
		if value == nil {
			continue
		}
		if err := set(fields.Field(i).Addr().Interface(), value); err != nil {
			name, _ := nameOf(fields.Type().Field(i))
			return &FieldError{name}
		}
	}
	return nil
}

// set sets a field to a value that scan has accepted. Most values are strings without
// escapes.
func set(field any, value []byte) error {
	value = bytes.TrimSpace(value)
	if to, ok := field.(*string); ok && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		*to = string(value[1 : len(value)-1])
		return nil
	}
	return json.Unmarshal(value, field)
}

var fields sync.Map // reflect.Type → map[string]int

// fieldsOf returns the indexes of a struct's fields by name.
func fieldsOf(t reflect.Type) map[string]int {
	if known, ok := fields.Load(t); ok {
		return known.(map[string]int)
	}
	places := map[string]int{}
	for i := range t.NumField() {
		if name, ok := nameOf(t.Field(i)); ok {
			places[name] = i
		}
	}
	fields.Store(t, places)
	return places
}

func nameOf(f reflect.StructField) (name string, ok bool) {
	name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	return name, name != ""
}

// SameJSON reports whether two values are the same in JSON.
func SameJSON(a, b any) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}
