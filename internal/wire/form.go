package wire

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// CheckForm rejects forms that two parsers could read differently: duplicate names,
// except those in boxes, which are groups of checkboxes, and text that is not UTF-8.
// Errors: ErrDuplicateName, ErrNotUTF8.
func CheckForm(form url.Values, boxes ...string) error {
	for name, values := range form {
		if len(values) > 1 && !slices.Contains(boxes, name) {
			return ErrDuplicateName
		}
		if !utf8.ValidString(name) || slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
			return ErrNotUTF8
		}
	}
	return nil
}

// Checked reports whether a checkbox of a form is checked. Browsers omit an unchecked box
// and send "on" for a checked one without a value. Errors: a *FieldError for a value that
// is neither yes nor no.
func Checked(form url.Values, name string) (bool, error) {
	switch form.Get(name) {
	case "on", "true", "1":
		return true, nil
	case "", "off", "false", "0":
		return false, nil
	}
	return false, &FieldError{name}
}

// FillForm reads a form that CheckForm has accepted into the struct that v points to, by
// the names that Unmarshal uses. It sets fields of type string, bool and *bool, and
// rejects names that are neither in the struct nor in also. Errors: ErrUnknownName, a
// *FieldError.
func FillForm(form url.Values, v any, also ...string) error {
	fields := reflect.ValueOf(v).Elem()
	known := slices.Clone(also)
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		given := form.Has(name)
		switch field := fields.Field(i).Addr().Interface().(type) {
		case *string:
			*field = form.Get(name)
		case *bool, **bool:
			on, err := Checked(form, name)
			if err != nil {
				return err
			}
			setBool(field, on, given)
		default:
			continue
		}
		known = append(known, name)
	}
	for name := range form {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%w %q", ErrUnknownName, shortened(name))
		}
	}
	return nil
}

func setBool(field any, on, given bool) {
	switch field := field.(type) {
	case *bool:
		*field = on
	case **bool:
		if given {
			*field = &on
		}
	}
}

// shortened returns a name from a request, shortened for an error text.
func shortened(name string) string {
	const limit = 40
	if len(name) > limit {
		return strings.ToValidUTF8(name[:limit], "") + "…"
	}
	return name
}
