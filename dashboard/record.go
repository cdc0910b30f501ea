package dashboard

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// object is an object of a response; nil is an empty one.
type object = *record

// record reads an operation's result by its JSON names through reflection. Encoding fifty
// accounts as JSON and decoding them costs more than drawing the page.
type record struct {
	value    reflect.Value // struct, or map with string keys
	shape    *shape        // of a struct; nil for a map
	revision string        // of the response, for results that do not hold it
}

// recordOf returns a value as an object, or nil if it is none.
func recordOf(value any) object { return asRecord(plain(reflect.ValueOf(value))) }

func asRecord(v reflect.Value) object {
	switch {
	case !v.IsValid() || v.Type() == timeType:
		return nil
	case v.Kind() == reflect.Struct:
		return &record{value: v, shape: shapeOf(v.Type())}
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
		return &record{value: v}
	}
	return nil
}

var (
	timeType      = reflect.TypeFor[time.Time]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
	textType      = reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()
)

// shape describes the JSON form of a type.
type shape struct {
	fields map[string]member
	own    bool // it has its own marshalling method
}

// member is a field of a struct.
type member struct {
	index     []int
	omitEmpty bool
	omitZero  bool
	simple    bool // no pointer, list or marshalling method: the value is used directly
}

var shapes sync.Map // of reflect.Type

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape) //nolint:forcetypeassert // nothing else is stored
	}
	s := &shape{own: t != timeType && (t.Implements(marshalerType) || t.Implements(textType)) || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8}
	if t.Kind() == reflect.Struct && t != timeType {
		s.fields = map[string]member{}
		for _, f := range reflect.VisibleFields(t) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			inlined := f.Anonymous && name == ""
			if !f.IsExported() || name == "-" && options == "" || inlined {
				continue
			}
			if name == "" {
				name = f.Name
			}
			if before, ok := s.fields[name]; ok && len(before.index) <= len(f.Index) {
				continue // the shallower field counts
			}
			with := strings.Split(options, ",")
			s.fields[name] = member{f.Index, slices.Contains(with, "omitempty"), slices.Contains(with, "omitzero"), isSimple(f.Type)}
		}
	}
	was, _ := shapes.LoadOrStore(t, s)
	return was.(*shape) //nolint:forcetypeassert // likewise
}

// isSimple reports whether values of a type can be used without resolving them.
func isSimple(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice:
		return false
	}
	return !shapeOf(t).own
}

// plain resolves pointers and interfaces, and the output of types that marshal
// themselves. The result is invalid for null.
func plain(v reflect.Value) reflect.Value {
	for v.IsValid() {
		switch k := v.Kind(); {
		case k == reflect.Interface || k == reflect.Pointer:
			v = v.Elem()
			continue
		case (k == reflect.Map || k == reflect.Slice) && v.IsNil():
			return reflect.Value{}
		}
		if shapeOf(v.Type()).own {
			return reflect.ValueOf(asJSON(v))
		}
		break
	}
	return v
}

// asJSON returns a value as decoded JSON: maps, lists, strings, numbers.
func asJSON(v reflect.Value) any {
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return nil
	}
	var out any
	if json.Unmarshal(b, &out) != nil {
		return nil
	}
	return out
}

// member returns the value of a name; it is invalid for a missing name or null.
func (o *record) member(name string) reflect.Value {
	if o == nil {
		return reflect.Value{}
	}
	v := o.raw(name)
	if !v.IsValid() && name == "revision" && o.revision != "" {
		return reflect.ValueOf(o.revision)
	}
	return v
}

func (o *record) raw(name string) reflect.Value {
	if o.shape == nil {
		return plain(o.value.MapIndex(reflect.ValueOf(name).Convert(o.value.Type().Key())))
	}
	m, ok := o.shape.fields[name]
	if !ok {
		return reflect.Value{}
	}
	v, err := o.value.FieldByIndexErr(m.index)
	if err != nil || m.omitZero && v.IsZero() || m.omitEmpty && isEmpty(v) {
		return reflect.Value{}
	}
	if m.simple {
		return v
	}
	return plain(v)
}

// isEmpty reports whether encoding/json omits a value with omitempty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		return false
	case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
		return v.Len() == 0
	}
	return v.IsZero()
}

// text returns a value as a string for people.
func text(v reflect.Value) string {
	switch {
	case !v.IsValid():
		return ""
	case v.Type() == timeType:
		return v.Interface().(time.Time).Format(time.RFC3339Nano) //nolint:forcetypeassert // it is one
	}
	switch v.Kind() {
	case reflect.String:
		return strings.ToValidUTF8(v.String(), "\ufffd")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Float32, reflect.Float64:
		if b, err := json.Marshal(v.Float()); err == nil {
			return string(b)
		}
	}
	return fmt.Sprint(asJSON(v))
}

func (o *record) str(name string) string { return text(o.member(name)) }

func (o *record) flag(name string) bool {
	v := o.member(name)
	return v.IsValid() && v.Kind() == reflect.Bool && v.Bool()
}

func (o *record) num(name string) int64 {
	v := o.member(name)
	switch {
	case !v.IsValid():
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return int64(v.Uint()) //nolint:gosec // counts, far below
	case v.CanFloat():
		return int64(v.Float())
	}
	return 0
}

func (o *record) time(name string) time.Time {
	v := o.member(name)
	if v.IsValid() && v.Type() == timeType {
		return v.Interface().(time.Time) //nolint:forcetypeassert // it is one
	}
	t, err := time.Parse(time.RFC3339Nano, text(v))
	if err != nil {
		return time.Time{}
	}
	return t
}

func (o *record) of(name string) object { return asRecord(o.member(name)) }

func (o *record) list(name string) []object {
	v := o.member(name)
	if !v.IsValid() || v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return nil
	}
	out := make([]object, 0, v.Len())
	all := make([]record, 0, v.Len()) // one allocation
	for i := range v.Len() {
		if r := asRecord(plain(v.Index(i))); r != nil {
			all = append(all, *r)
			out = append(out, &all[len(all)-1])
		}
	}
	return out
}

func (o *record) texts(name string) []string {
	v := o.member(name)
	if !v.IsValid() || v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return nil
	}
	out := make([]string, 0, v.Len())
	for i := range v.Len() {
		out = append(out, text(plain(v.Index(i))))
	}
	return out
}

// get returns a member as decoded JSON.
func (o *record) get(name string) any {
	v := o.member(name)
	switch {
	case !v.IsValid():
		return nil
	case v.Kind() == reflect.Bool:
		return v.Bool()
	case v.Kind() == reflect.String:
		return text(v)
	case v.CanInt():
		return float64(v.Int())
	}
	return asJSON(v)
}

// whole returns all members as decoded JSON.
func (o *record) whole() map[string]any {
	if o == nil {
		return map[string]any{}
	}
	out, ok := asJSON(o.value).(map[string]any)
	if !ok {
		return map[string]any{}
	}
	if _, there := out["revision"]; !there && o.revision != "" {
		out["revision"] = o.revision
	}
	return out
}

// names returns the names of all members, sorted.
func (o *record) names() []string {
	if o == nil || o.value.Kind() != reflect.Map {
		return slices.Sorted(maps.Keys(o.whole()))
	}
	list := make([]string, 0, o.value.Len())
	for _, key := range o.value.MapKeys() {
		list = append(list, key.String())
	}
	slices.Sort(list)
	return list
}

// each calls take for all members that are objects, in no order.
func (o *record) each(take func(name string, of object)) {
	if o == nil || o.value.Kind() != reflect.Map {
		return
	}
	for all := o.value.MapRange(); all.Next(); {
		if r := asRecord(plain(all.Value())); r != nil {
			take(all.Key().String(), r)
		}
	}
}

// label returns the name of an account for people.
func (o *record) label() string {
	for _, name := range []string{"email", "phone"} { // not the name, which may be another account's email address
		if s := o.str(name); s != "" {
			return s
		}
	}
	return o.str("id")
}
