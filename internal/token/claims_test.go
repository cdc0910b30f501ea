package token

import (
	"reflect"
	"testing"
)

// fillAll sets every field of a value, because empty fields could not be shared.
func fillAll(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int64:
		v.SetInt(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillAll(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), reflect.ValueOf([]any{map[string]any{"y": 1.0}}))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fillAll(v.Field(i))
			}
		}
	}
}

// shared lists the parts of two values that share memory.
func shared(a, b reflect.Value, at string) (list []string) {
	switch a.Kind() {
	case reflect.Interface:
		return shared(a.Elem(), b.Elem(), at)
	case reflect.Pointer:
		if a.Pointer() == b.Pointer() {
			return []string{at}
		}
		return shared(a.Elem(), b.Elem(), at)
	case reflect.Slice:
		if a.Pointer() == b.Pointer() {
			return []string{at}
		}
		return shared(a.Index(0), b.Index(0), at+"[0]")
	case reflect.Map:
		if a.Pointer() == b.Pointer() {
			return []string{at}
		}
		key := a.MapKeys()[0]
		return shared(a.MapIndex(key), b.MapIndex(key), at+"."+key.String())
	case reflect.Struct:
		for i := range a.NumField() {
			if a.Type().Field(i).IsExported() {
				list = append(list, shared(a.Field(i), b.Field(i), at+"."+a.Type().Field(i).Name)...)
			}
		}
	}
	return list
}

// Cached claims and each caller's copy share no memory, in any field.
func TestClaimsShareNothing(t *testing.T) {
	t.Parallel()
	c := &Claims{}
	fillAll(reflect.ValueOf(c).Elem())
	of := c.Clone()
	if !reflect.DeepEqual(c, of) {
		t.Errorf("another one: %+v, want %+v", of, c)
	}
	for _, at := range shared(reflect.ValueOf(c).Elem(), reflect.ValueOf(of).Elem(), "Claims") {
		t.Errorf("%s is the same", at)
	}
}
