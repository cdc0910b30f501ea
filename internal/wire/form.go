package wire

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// CheckForm refuses what two readers could read differently: a name that comes
// twice, but for those named, which are of several boxes, and text that is not UTF-8.
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

// Checked tells whether a box of a form is ticked. Browsers leave out a box that
// is not, and send "on" for one that is, unless it has a value of its own.
// Errors: a *FieldError for a value that is neither yes nor no.
func Checked(form url.Values, name string) (bool, error) {
	switch form.Get(name) {
	case "on", "true", "1":
		return true, nil
	case "", "off", "false", "0":
		return false, nil
	}
	return false, &FieldError{name}
}

// FillForm reads a form that CheckForm has passed into the struct that v points
// to, by the names that Unmarshal uses. It sets fields of type string, bool and
// *bool; others cannot be said by a form. Besides the struct's, a form may have
// the names in also. Errors: ErrUnknownName, a *FieldError.
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

// shortened is a name that a stranger chose, for a message.
func shortened(name string) string {
	const most = 40
	if len(name) > most {
		return strings.ToValidUTF8(name[:most], "") + "…"
	}
	return name
}
