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

// object is an answer of the wire, or an object within one; nil is an empty one.
type object = *record

// record is an object as the endpoint has it in Go, read by the names that it has in
// JSON: to write fifty accounts as JSON and to read them again costs more than the page.
type record struct {
	value    reflect.Value // a struct, or a map by strings
	shape    *shape        // of a struct; nil of a map
	revision string        // of the answer, where it says so besides
}

// recordOf is a value as an object; nil if it is none.
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

// shape is how a type is written as JSON.
type shape struct {
	fields map[string]member
	own    bool // by a method of its own
}

// member is a field of a struct.
type member struct {
	index     []int
	omitEmpty bool
	omitZero  bool
	simple    bool // it is as it is read: no pointer, no list, no method of its own
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
				continue // the shallower one counts
			}
			with := strings.Split(options, ",")
			s.fields[name] = member{f.Index, slices.Contains(with, "omitempty"), slices.Contains(with, "omitzero"), isSimple(f.Type)}
		}
	}
	was, _ := shapes.LoadOrStore(t, s)
	return was.(*shape) //nolint:forcetypeassert // likewise
}

// isSimple tells whether values of a type need no look at what they hold.
func isSimple(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice:
		return false
	}
	return !shapeOf(t).own
}

// plain is what a pointer or an interface leads to, and of a type that writes itself what
// it writes. It is not valid for null.
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

// asJSON is a value as JSON has it: of maps, lists, texts, numbers.
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

// member is what a name stands for; not valid if for nothing, or null.
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

// isEmpty is what encoding/json leaves out by omitempty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		return false
	case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
		return v.Len() == 0
	}
	return v.IsZero()
}

// text is a value as people read it.
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
	all := make([]record, 0, v.Len()) // at once
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

// get is a member as JSON has it.
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

// whole is all of it as JSON has it.
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

// names are those of all members, in order.
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

// each gives all members of a map that are objects, in no order.
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

// label is what people call an account.
func (o *record) label() string {
	for _, name := range []string{"email", "phone"} { // not the name, which may be somebody else's address
		if s := o.str(name); s != "" {
			return s
		}
	}
	return o.str("id")
}
