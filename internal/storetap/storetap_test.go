package storetap_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// interfaces are what a tap passes on.
var interfaces = []reflect.Type{
	reflect.TypeFor[store.Store](), reflect.TypeFor[store.FactorStore](), reflect.TypeFor[store.Journal](),
	reflect.TypeFor[store.ProjectStore](), reflect.TypeFor[store.AdminStore](),
}

// capability finds what implements an interface, as callers do.
func capability(s store.Store, face reflect.Type) (reflect.Value, bool) {
	for s != nil {
		if v := reflect.ValueOf(s); v.Type().Implements(face) {
			return v, true
		}
		w, ok := s.(interface{ Unwrap() store.Store })
		if !ok {
			break
		}
		s = w.Unwrap()
	}
	return reflect.Value{}, false
}

var errRecorded = errors.New("recorded")

// arguments makes arguments that can be told from others, and tells whether one
// of them has a Change.
func arguments(ctx context.Context, m reflect.Type) (args []reflect.Value, change bool) {
	for i := range m.NumIn() {
		v := reflect.New(m.In(i)).Elem()
		switch {
		case m.In(i) == reflect.TypeFor[context.Context]():
			v.Set(reflect.ValueOf(ctx))
		case m.In(i) == reflect.TypeFor[time.Time]():
			v.Set(reflect.ValueOf(time.Unix(int64(i+1), 0)))
		default:
			mark(v)
		}
		if m.In(i).Kind() == reflect.Struct {
			f, ok := m.In(i).FieldByName("Change")
			change = change || ok && f.Type == reflect.TypeFor[store.Change]()
		}
		args = append(args, v)
	}
	return args, change
}

// mark writes something into a value.
func mark(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("argument")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Field(i).Kind() == reflect.String {
				v.Field(i).SetString("argument")
			}
		}
	}
}

func TestEveryMethodIsTapped(t *testing.T) {
	t.Parallel()
	for _, face := range interfaces {
		for i := range face.NumMethod() {
			method := face.Method(i)
			t.Run(face.Name()+"."+method.Name, func(t *testing.T) {
				t.Parallel()
				inner := &recorder{}
				tap := storetap.New(inner)
				var seen []string
				tap.Reset(storetap.Hooks{
					Background: true,
					Before: func(_ context.Context, name string, n int) {
						if inner.method != "" || n != 1 {
							t.Errorf("before call %d, after %q", n, inner.method)
						}
						seen = append(seen, "before "+name)
					},
					Edit: func(name string, c *store.Change) {
						seen = append(seen, "edit "+name)
						c.By.System = "edited"
					},
					After: func(_ context.Context, name string, n int, err error) {
						if inner.method == "" || n != 1 || !errors.Is(err, errRecorded) {
							t.Errorf("after call %d, after %q: %v", n, inner.method, err)
						}
						seen = append(seen, "after "+name)
					},
				})
				store, ok := capability(tap, face)
				if !ok {
					t.Fatal("the interface is gone")
				}
				args, change := arguments(t.Context(), store.MethodByName(method.Name).Type())
				call := store.MethodByName(method.Name).Call
				if method.Type.IsVariadic() {
					call = store.MethodByName(method.Name).CallSlice
				}
				out := call(args)
				want := []string{"before " + method.Name, "after " + method.Name}
				if change {
					want = []string{"before " + method.Name, "edit " + method.Name, "after " + method.Name}
				}
				if method.Name == "Contract" { // no call
					if want = nil; out[0].Int() != 42 {
						t.Errorf("contract %v", out[0])
					}
				} else if err, _ := out[len(out)-1].Interface().(error); !errors.Is(err, errRecorded) {
					t.Errorf("error %v", err)
				}
				if !reflect.DeepEqual(seen, want) {
					t.Errorf("seen %v, want %v", seen, want)
				}
				if inner.method != method.Name {
					t.Errorf("handed on to %s", inner.method)
				}
				for i, got := range inner.args {
					sent := args[i+1]
					if change {
						edited := reflect.New(sent.Type()).Elem()
						edited.Set(sent)
						edited.FieldByName("Change").FieldByName("By").FieldByName("System").SetString("edited")
						sent = edited
					}
					if !reflect.DeepEqual(got, sent.Interface()) {
						t.Errorf("argument %d: %+v, want %+v", i+1, got, sent)
					}
				}
				if len(inner.args) != max(len(args)-1, 0) {
					t.Errorf("%d arguments handed on, want %d", len(inner.args), len(args)-1)
				}
			})
		}
	}
}

func TestNoInterfaceIsInvented(t *testing.T) {
	t.Parallel()
	full := &recorder{}
	for name, c := range map[string]struct {
		inner store.Store
		has   []reflect.Type
	}{
		"none":                  {plain{full}, interfaces[:1]},
		"factors":               {withFactors{full, full}, interfaces[:2]},
		"all, behind a wrapper": {wrapper{full}, interfaces},
	} {
		tap := storetap.New(c.inner)
		for i, face := range interfaces {
			if _, ok := capability(tap, face); ok != (i < len(c.has)) {
				t.Errorf("%s: %s: %v", name, face, ok)
			}
		}
		if _, ok := store.Capability[store.AdminStore](tap); ok != (len(c.has) == len(interfaces)) {
			t.Errorf("%s: store.Capability finds an AdminStore: %v", name, ok)
		}
		if s, ok := store.Capability[*recorder](tap); ok {
			t.Errorf("%s: the store behind is found: %v", name, s)
		}
	}
}

func TestCallsOfAHookPassUnseen(t *testing.T) {
	t.Parallel()
	tap := storetap.New(&recorder{})
	before := 0
	tap.Reset(storetap.Hooks{
		Skip: func(_ context.Context, method string) bool { return method == "Sweep" },
		Before: func(ctx context.Context, _ string, _ int) {
			before++
			_ = tap.Ping(ctx)
		},
	})
	_ = tap.Ping(t.Context())
	_, _ = tap.Sweep(t.Context(), time.Time{}, 1)
	_ = tap.Ping(t.Context())
	if before != 2 || tap.Calls() != 2 {
		t.Errorf("%d hooks, %d calls, want 2", before, tap.Calls())
	}
	tap.Reset(storetap.Hooks{})
	_ = tap.Ping(t.Context())
	if before != 2 || tap.Calls() != 1 {
		t.Errorf("after Reset: %d hooks, %d calls", before, tap.Calls())
	}
}

// plain, withFactors and wrapper are stores with fewer or hidden interfaces.
type (
	plain       struct{ store.Store }
	withFactors struct {
		store.Store
		store.FactorStore
	}
	wrapper struct{ store.Store }
)

func (w wrapper) Unwrap() store.Store { return w.Store }
