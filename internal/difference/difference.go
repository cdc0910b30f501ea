// Package difference lists the differences between two values, field by field, for test
// messages.
package difference

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Of returns one line for each field in which got is not deeply equal to want, such as
// `.Roles[1] = "a", want "b"`. The path is empty for values without fields. Equal values
// have no lines.
func Of(got, want any) []string {
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	if reflect.DeepEqual(got, want) {
		return nil
	}
	if lines := walk("", g, w); len(lines) > 0 {
		return lines
	}
	return []string{line("", fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want))}
}

// Show formats a value: it follows pointers and omits zero fields.
func Show(v any) string { return show(reflect.ValueOf(v)) }

func line(path, got, want string) string { return path + " = " + got + ", want " + want }

// walk compares values of any types.
func walk(path string, g, w reflect.Value) []string {
	if g.IsValid() && w.IsValid() && g.Type() == w.Type() {
		switch t := g.Type(); {
		case leaf(t):
		case t.Kind() == reflect.Struct:
			var lines []string
			for i := range t.NumField() {
				lines = append(lines, walk(path+"."+t.Field(i).Name, g.Field(i), w.Field(i))...)
			}
			return lines
		case (t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface) && !g.IsNil() && !w.IsNil():
			return walk(path, g.Elem(), w.Elem())
		case t.Kind() == reflect.Map && !g.IsNil() && !w.IsNil():
			return entries(path, g, w)
		case t.Kind() == reflect.Slice && !g.IsNil() && !w.IsNil(), t.Kind() == reflect.Array:
			return elements(path, g, w)
		}
	}
	if same(g, w) {
		return nil
	}
	return []string{line(path, show(g), show(w))}
}

// leaf reports whether values of a type are shown as a whole.
func leaf(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[netip.Addr]() || t == reflect.TypeFor[netip.Prefix]() ||
		t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

// same compares values that are shown as a whole. Unexported fields cannot be read as
// values, so their formatted text is compared.
func same(g, w reflect.Value) bool {
	if g.IsValid() && w.IsValid() && g.CanInterface() && w.CanInterface() {
		return reflect.DeepEqual(g.Interface(), w.Interface())
	}
	return show(g) == show(w)
}

func elements(path string, g, w reflect.Value) []string {
	var lines []string
	for i := range max(g.Len(), w.Len()) {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case i >= w.Len():
			lines = append(lines, line(at, show(g.Index(i)), "none"))
		case i >= g.Len():
			lines = append(lines, line(at, "none", show(w.Index(i))))
		default:
			lines = append(lines, walk(at, g.Index(i), w.Index(i))...)
		}
	}
	return lines
}

func entries(path string, g, w reflect.Value) []string {
	keys := map[string]reflect.Value{}
	for _, k := range append(g.MapKeys(), w.MapKeys()...) {
		keys[show(k)] = k
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		at, got, want := path+"["+name+"]", g.MapIndex(keys[name]), w.MapIndex(keys[name])
		switch {
		case !want.IsValid():
			lines = append(lines, line(at, show(got), "none"))
		case !got.IsValid():
			lines = append(lines, line(at, "none", show(want)))
		default:
			lines = append(lines, walk(at, got, want)...)
		}
	}
	return lines
}

func show(v reflect.Value) string {
	if !v.IsValid() {
		return "nil"
	}
	t := v.Type()
	if v.CanInterface() {
		switch x := v.Interface().(type) {
		case time.Time:
			return x.Format(time.RFC3339Nano)
		case error:
			if t.Kind() != reflect.Pointer || !v.IsNil() {
				return fmt.Sprintf("%q", x.Error())
			}
		case netip.Addr, netip.Prefix, time.Duration:
			return fmt.Sprint(x)
		}
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		return show(v.Elem())
	case reflect.String:
		return fmt.Sprintf("%q", v.String())
	case reflect.Slice:
		if v.IsNil() {
			return "nil"
		}
		if leaf(t) {
			return fmt.Sprintf("%q", v.Bytes())
		}
		return "[" + joined(v.Len(), func(i int) string { return show(v.Index(i)) }) + "]"
	case reflect.Array:
		return "[" + joined(v.Len(), func(i int) string { return show(v.Index(i)) }) + "]"
	case reflect.Map:
		if v.IsNil() {
			return "nil"
		}
		var parts []string
		for _, k := range v.MapKeys() {
			parts = append(parts, show(k)+": "+show(v.MapIndex(k)))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Struct:
		var parts []string
		for i := range t.NumField() {
			if !v.Field(i).IsZero() {
				parts = append(parts, t.Field(i).Name+": "+show(v.Field(i)))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Func, reflect.Chan:
		return t.String()
	default:
		return fmt.Sprintf("%v", v)
	}
}

func joined(n int, part func(int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = part(i)
	}
	return strings.Join(parts, ", ")
}
