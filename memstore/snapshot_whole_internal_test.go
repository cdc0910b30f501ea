package memstore

import (
	"context"
	"encoding/json"
	"net/netip"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

// fillWhole gives a nonzero value to all of v: one of each list, the same for all of one
// kind, so that all references match.
func fillWhole(t *testing.T, v reflect.Value) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)))
	case v.Type() == reflect.TypeFor[map[string]any]():
		v.Set(reflect.ValueOf(map[string]any{"x": "x"}))
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.Set(reflect.ValueOf(json.RawMessage(`"x"`)))
	case v.Type() == reflect.TypeFor[netip.Addr]():
		v.Set(reflect.ValueOf(netip.MustParseAddr("192.0.2.1")))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" && v.Field(i).CanSet() {
				fillWhole(t, v.Field(i))
			}
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillWhole(t, v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillWhole(t, v.Index(0))
	case v.Kind() == reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillWhole(t, key)
		fillWhole(t, value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case v.Kind() == reflect.Interface && v.NumMethod() == 0:
		v.Set(reflect.ValueOf("x"))
	case v.Kind() == reflect.String:
		v.SetString("x")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	default:
		t.Fatalf("%s: teach fillWhole that type", v.Type())
	}
}

// A snapshot is read and written whole, with every member.
func TestEveryMemberOfASnapshotIsKept(t *testing.T) {
	var want snapshot
	fillWhole(t, reflect.ValueOf(&want).Elem())
	want.Version = snapshotVersion
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "auth.json")
	if err := replace(path, b); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.snapshot(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if err := s.Save(context.Background()); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again, s) {
		t.Errorf("got  %+v\nwant %+v", again, s)
	}
	for i := range reflect.TypeFor[Store]().NumField() {
		name := reflect.TypeFor[Store]().Field(i).Name
		if name != "mu" && name != "buckets" && reflect.ValueOf(s).Elem().Field(i).IsZero() {
			t.Errorf("%s is not in a snapshot", name)
		}
	}
	u := s.users["x"]
	if !u.sessions["x"] || len(u.tokens) != 1 || len(u.factors) != 1 || len(u.devices) != 1 || len(u.recovery) != 1 {
		t.Errorf("what belongs to a user is not found with it: %+v", u)
	}
	for name, has := range map[string]int{"byEmail": len(s.byEmail), "byPhone": len(s.byPhone), "byIdent": len(s.byIdent), "byIdentID": len(s.byIdentID), "live": len(s.live), "byHash": len(s.byHash)} {
		if has != 1 {
			t.Errorf("%s has %d", name, has)
		}
	}
}

// A snapshot remembers that there was an owner, also if only the present roles show it.
func TestSnapshotRemembersThatThereWasAnOwner(t *testing.T) {
	for _, owned := range []bool{false, true} {
		s := New()
		s.path, s.owned = filepath.Join(t.TempDir(), "auth.json"), owned
		if err := s.Save(context.Background()); err != nil {
			t.Fatal(err)
		}
		again, err := Open(s.path)
		if err != nil || again.owned != owned {
			t.Errorf("%v, %v", again.owned, err)
		}
	}
	s := New()
	s.path = filepath.Join(t.TempDir(), "auth.json")
	u := newUser(store.User{ID: "x", Roles: []string{store.RoleOwner}, AcceptedSequence: 1}, "")
	s.users["x"] = u
	if err := s.Save(context.Background()); err != nil {
		t.Fatal(err)
	}
	if again, err := Open(s.path); err != nil || !again.owned {
		t.Error("an owner is none once they are read", err)
	}
}
