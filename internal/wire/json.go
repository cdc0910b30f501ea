package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Unmarshal reads a JSON object into the struct that v points to. It is
// stricter than encoding/json, because two parsers that read one body
// differently are a hole: the names of the struct match exactly, and a name that
// comes twice, text after the object, invalid UTF-8, deep nesting and numbers
// beyond a float64 are errors. Names that the struct lacks are ignored; absent
// members and nulls leave a field as it is.
//
// Errors: ErrNotUTF8, ErrMalformed, ErrDuplicateName, ErrNesting,
// ErrTrailingData, ErrNotObject, a *FieldError.
func Unmarshal(body []byte, v any) error {
	if !utf8.Valid(body) {
		return ErrNotUTF8
	}
	if err := check(body); err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return ErrNotObject // it is JSON, so nothing else can be wrong
	}
	fields := reflect.ValueOf(v).Elem()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		raw, ok := members[name]
		if !ok || name == "" {
			continue
		}
		if err := json.Unmarshal(raw, fields.Field(i).Addr().Interface()); err != nil {
			return &FieldError{name}
		}
	}
	return nil
}

// check walks the tokens of a document and finds what encoding/json lets pass.
func check(body []byte) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := checkValue(dec, 0); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return ErrTrailingData
	}
	return nil
}

func checkValue(dec *json.Decoder, depth int) error {
	tok, err := dec.Token()
	if err != nil {
		return ErrMalformed
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	if depth++; depth > MaxNesting {
		return ErrNesting
	}
	seen := map[string]bool{}
	for dec.More() {
		if open == '{' {
			name, err := dec.Token()
			if err != nil {
				return ErrMalformed
			}
			s, _ := name.(string)
			if seen[s] {
				return ErrDuplicateName
			}
			seen[s] = true
		}
		if err := checkValue(dec, depth); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil { // the closing delimiter
		return ErrMalformed
	}
	return nil
}
