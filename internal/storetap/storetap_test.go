package storetap_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// interfaces are the interfaces that a tap passes on.
var interfaces = []reflect.Type{
	reflect.TypeFor[store.Store](), reflect.TypeFor[store.FactorStore](), reflect.TypeFor[store.Journal](),
	reflect.TypeFor[store.ProjectStore](), reflect.TypeFor[store.AdminStore](),
}

// capability finds the store that implements an interface, as callers do.
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

// Every method passes the tap under its own name: its change can be edited, it fails by a
// fault, and it returns nothing then.
func TestEveryMethodIsTapped(t *testing.T) {
	t.Parallel()
	for _, face := range interfaces {
		for i := range face.NumMethod() {
			method := face.Method(i)
			if method.Name == "Contract" { // no call
				continue
			}
			t.Run(face.Name()+"."+method.Name, func(t *testing.T) {
				t.Parallel()
				tap := storetap.New(memstore.New())
				var seen []string
				tap.Reset(storetap.Hooks{
					Background: true,
					Before:     func(_ context.Context, name string, _ int) { seen = append(seen, "before "+name) },
					Edit:       func(name string, _ *store.Change) { seen = append(seen, "edit "+name) },
					Fault:      func(context.Context, string, int) storetap.Fault { return storetap.FailsBefore },
					After:      func(_ context.Context, name string, _ int, _ error) { seen = append(seen, "after "+name) },
				})
				on, ok := capability(tap, face)
				if !ok {
					t.Fatal("the interface is gone")
				}
				call, changes := on.MethodByName(method.Name), false
				args := []reflect.Value{reflect.ValueOf(t.Context())}
				for n := 1; n < call.Type().NumIn(); n++ {
					in := call.Type().In(n)
					if in.Kind() == reflect.Struct {
						f, ok := in.FieldByName("Change")
						changes = changes || ok && f.Type == reflect.TypeFor[store.Change]()
					}
					args = append(args, reflect.New(in).Elem())
				}
				do := call.Call
				if call.Type().IsVariadic() {
					do = call.CallSlice
				}
				out := do(args)
				if err, _ := out[len(out)-1].Interface().(error); !errors.Is(err, storetap.ErrFault) {
					t.Errorf("error %v", err)
				}
				for _, v := range out[:len(out)-1] {
					if !v.IsZero() {
						t.Errorf("returns %v", v)
					}
				}
				want := []string{"before " + method.Name, "after " + method.Name}
				if changes {
					want = slices.Insert(want, 1, "edit "+method.Name)
				}
				if !slices.Equal(seen, want) {
					t.Errorf("seen %v, want %v", seen, want)
				}
			})
		}
	}
}

func TestNoInterfaceIsInvented(t *testing.T) {
	t.Parallel()
	full := memstore.New()
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
		if s, ok := store.Capability[*memstore.Store](tap); ok {
			t.Errorf("%s: the store behind is found: %v", name, s)
		}
	}
}

func TestCallsOfAHookPassUnseen(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
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
