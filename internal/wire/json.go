package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Unmarshal reads a JSON object into the struct that v points to. It is
// stricter than encoding/json, because two parsers that read one body
// differently are a hole: the names of the struct match exactly, and a name that
// comes twice, text after the object, invalid UTF-8, deep nesting and numbers
// beyond a float64 are errors. A *map[string]json.RawMessage gets all members, for
// callers who judge names themselves. Names that the struct lacks are ignored; absent
// members and nulls leave a field as it is.
//
// Errors: ErrNotUTF8, ErrMalformed, ErrDuplicateName, ErrNesting,
// ErrTrailingData, ErrNotObject, a *FieldError.
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

// UnmarshalKnown is Unmarshal into a struct, and lists the names that it lacks, sorted.
func UnmarshalKnown(body []byte, v any) (unknown []string, err error) {
	members, err := membersOf(body)
	if err != nil {
		return nil, err
	}
	known := namesOf(reflect.TypeOf(v).Elem())
	for _, m := range members {
		if !slices.ContainsFunc(known, func(name string) bool { return name != "" && name == string(m.name) }) {
			unknown = append(unknown, string(m.name))
		}
	}
	return unknown, fill(members, v)
}

// membersOf are the members of the object that a document is, sorted by name.
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

// fill sets the fields of the struct that v points to.
func fill(members []member, v any) error {
	fields := reflect.ValueOf(v).Elem()
	for i, name := range namesOf(fields.Type()) {
		at, ok := slices.BinarySearchFunc(members, name, func(m member, name string) int { return strings.Compare(string(m.name), name) })
		if !ok || name == "" {
			continue
		}
		if err := set(fields.Field(i).Addr().Interface(), members[at].value); err != nil {
			return &FieldError{name}
		}
	}
	return nil
}

// set sets a field to a value that scan has passed. Most are texts without escapes.
func set(field any, value []byte) error {
	value = bytes.TrimSpace(value)
	if to, ok := field.(*string); ok && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		*to = string(value[1 : len(value)-1])
		return nil
	}
	return json.Unmarshal(value, field)
}

var names sync.Map // reflect.Type → []string

// namesOf are the names of a struct's fields in their order, "" for one that has none.
func namesOf(t reflect.Type) []string {
	if known, ok := names.Load(t); ok {
		return known.([]string)
	}
	list := make([]string, t.NumField())
	for i := range list {
		list[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	names.Store(t, list)
	return list
}
