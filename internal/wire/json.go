package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
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
	if !utf8.Valid(body) {
		return ErrNotUTF8
	}
	members, err := scan(body)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return ErrNotObject
	}
	if all, ok := v.(*map[string]json.RawMessage); ok {
		*all = make(map[string]json.RawMessage, len(members))
		for _, m := range members {
			(*all)[string(m.name)] = m.value
		}
		return nil
	}
	fields := reflect.ValueOf(v).Elem()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		at, ok := slices.BinarySearchFunc(members, name, func(m member, name string) int { return strings.Compare(string(m.name), name) })
		if !ok || name == "" {
			continue
		}
		if err := json.Unmarshal(members[at].value, fields.Field(i).Addr().Interface()); err != nil {
			return &FieldError{name}
		}
	}
	return nil
}
