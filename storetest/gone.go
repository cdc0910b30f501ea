package storetest

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// gone checks that every method, also one without a Change, fails for a cancelled context
// with the context's error and an empty result.
func gone(has *bench) checks {
	all := checks{}
	for _, face := range faces() {
		if found(has.under, face) == "none" {
			continue
		}
		for i := range face.NumMethod() {
			m := face.Method(i)
			if m.Type.NumIn() == 0 || m.Type.In(0) != reflect.TypeFor[context.Context]() || slices.Contains(changing(face), m.Name) || m.Name == "Ping" {
				continue // Ping has its own check
			}
			all[m.Name] = func(b *bench) {
				in := []reflect.Value{reflect.ValueOf(cancelled())}
				for p := 1; p < m.Type.NumIn(); p++ {
					v := reflect.New(m.Type.In(p)).Elem()
					b.something(v)
					in = append(in, v)
				}
				call := implementation(b.Store, face).MethodByName(m.Name)
				do := call.Call
				if m.Type.IsVariadic() {
					do = call.CallSlice
				}
				out := do(in)
				last := out[len(out)-1]
				err, _ := last.Interface().(error)
				b.gone(err)
				for _, r := range out[:len(out)-1] {
					if list := r.Kind() == reflect.Slice; list && r.Len() > 0 || !list && !r.IsZero() {
						b.wrong("an answer", r.Interface(), "none")
					}
				}
			}
		}
	}
	return all
}

// implementation returns the store, or the store that it wraps, that has the methods of an
// interface.
func implementation(s store.Store, face reflect.Type) reflect.Value {
	for !reflect.TypeOf(s).Implements(face) {
		s = s.(interface{ Unwrap() store.Store }).Unwrap() // found has checked that there is one
	}
	return reflect.ValueOf(s)
}

// something sets v to a value that methods accept: an id, a time, a number, a list of one.
func (b *bench) something(v reflect.Value) {
	b.Helper()
	switch t := v.Type(); {
	case t == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(now))
	case t.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				b.something(v.Field(i))
			}
		}
	case t == reflect.TypeFor[[]byte]():
		v.SetBytes(hashOf("x"))
	case t.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
		b.something(v.Index(0))
	case t == reflect.TypeFor[string]():
		v.SetString(b.id())
	case v.CanInt():
		v.SetInt(1)
	}
}
