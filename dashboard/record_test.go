package dashboard

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
)

// sameRecord compares two forms of an object by every read that pages make.
func sameRecord(t *testing.T, at string, is, want object) {
	t.Helper()
	if is == nil || want == nil {
		t.Errorf("%s: %v, want %v", at, is, want)
		return
	}
	if !reflect.DeepEqual(is.whole(), want.whole()) {
		t.Errorf("%s:\n%v, want\n%v", at, is.whole(), want.whole())
	}
	names := want.names()
	if !slices.Equal(is.names(), names) {
		t.Errorf("%s has %q, want %q", at, is.names(), names)
	}
	if is.value.Kind() == reflect.Struct { // a member that JSON omits reads as nothing
		for name := range shapeOf(is.value.Type()).fields {
			names = append(names, name)
		}
	}
	for _, name := range append(names, "no-such-member") {
		here := at + "." + name
		for i, pair := range [][2]any{
			{is.flag(name), want.flag(name)}, {is.num(name), want.num(name)}, {is.get(name), want.get(name)},
			{is.texts(name), want.texts(name)}, {is.time(name).UTC(), want.time(name).UTC()},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("%s (%d): %#v, want %#v", here, i, pair[0], pair[1])
			}
		}
		if v := want.get(name); v == nil || reflect.TypeOf(v).Comparable() {
			if a, b := is.str(name), want.str(name); a != b && is.time(name).IsZero() {
				t.Errorf("%s: %q, want %q", here, a, b)
			}
		}
		if want.of(name) != nil || is.of(name) != nil {
			sameRecord(t, here, is.of(name), want.of(name))
		}
		a, b := is.list(name), want.list(name)
		if len(a) != len(b) {
			t.Errorf("%s has %d, want %d", here, len(a), len(b))
			continue
		}
		for i := range a {
			sameRecord(t, fmt.Sprintf("%s[%d]", here, i), a[i], b[i])
		}
	}
}

// hiding is a text that JSON does not show.
type hiding string

func (hiding) MarshalText() ([]byte, error) { return []byte("[hidden]"), nil }

// Records treat members of structs as encoding/json does.
func TestRecordsOfStructs(t *testing.T) {
	t.Parallel()
	type Inner struct {
		Name   string `json:"name"`
		Shared string `json:"shared"`
	}
	type part struct {
		N *int `json:"n"`
	}
	number := 7
	for i, v := range []any{
		struct {
			Inner
			*part
			Shared string `json:"shared"`
			Left   string `json:"left,omitempty"`
			At     time.Time
			Never  time.Time         `json:"never,omitzero"`
			Out    string            `json:"-"`
			Raw    json.RawMessage   `json:"raw"`
			Bytes  []byte            `json:"bytes"`
			Parts  []*part           `json:"parts"`
			Any    any               `json:"any"`
			Texts  map[string]string `json:"texts"`
			Nil    map[string]string `json:"nil"`
			U      uint8             `json:"u"`
			F      float64           `json:"f"`
			Bad    string            `json:"bad"`
			Secret hiding            `json:"secret"`
			hidden string
		}{Inner: Inner{"ada", "inner"}, Shared: "outer", At: time.Unix(1, 5).UTC(), Raw: json.RawMessage(`{"a":[1,"b"]}`), Bytes: []byte("x"), Parts: []*part{{&number}, nil}, Any: Inner{Name: "any"}, Texts: map[string]string{"a": "b"}, U: 200, F: 1e21, Bad: "a\xffb", Secret: "sk_live_1", hidden: "x"},
		map[string]any{"list": []string{"a"}, "objects": []map[string]int{{"n": 1}}, "none": nil},
	} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var written any
		if err := json.Unmarshal(b, &written); err != nil {
			t.Fatal(err)
		}
		sameRecord(t, fmt.Sprint(i), recordOf(v), recordOf(written))
	}
	if o := recordOf(nil); o.str("x") != "" || o.flag("x") || o.num("x") != 0 || len(o.list("x"))+len(o.texts("x"))+len(o.names()) != 0 || o.of("x").of("y") != nil || o.get("x") != nil {
		t.Error("an object that is none has members")
	}
	if o := (&record{value: reflect.ValueOf(map[string]any{}), revision: "3"}); o.str("revision") != "3" || o.whole()["revision"] != "3" {
		t.Errorf("%v", o.whole())
	}
}
