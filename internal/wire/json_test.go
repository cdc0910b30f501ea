package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

type params struct {
	Email    string         `json:"email"`
	Metadata map[string]any `json:"user_metadata,omitempty"`
	Count    *int           `json:"count"`
	Untagged string
}

func TestUnmarshal(t *testing.T) {
	for body, want := range map[string]params{
		`{}`:                                     {},
		" {\"email\":\"a\"}\r\n":                 {Email: "a"},
		`{"email":null,"count":null}`:            {},
		`{"\u0065mail":"a"}`:                     {Email: "a"},
		`{"Email":"a","EMAIL":"b","other":1}`:    {},
		`{"Untagged":"a","untagged":"b","":"c"}`: {},
		`{"email":"a","x":{"email":"b"}}`:        {Email: "a"},
		`{"x":[0,-1,2.5,6e2,-7E+2,8.9e-2,true,false,null],"email":"a"}`: {Email: "a"},
	} {
		var got params
		if err := Unmarshal([]byte(body), &got); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, %v; want %+v", body, got, err, want)
		}
	}
	nested := func(n int) string {
		return `{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	if err := Unmarshal([]byte(nested(MaxNesting-1)), &params{}); err != nil {
		t.Errorf("nested as deeply as may be: %v", err)
	}
	for body, want := range map[string]error{
		"{\"email\":\"\xff\"}":           ErrNotUTF8,
		``:                               ErrMalformed,
		`{`:                              ErrMalformed,
		`{"email"}`:                      ErrMalformed,
		`{"email":"a",}`:                 ErrMalformed,
		`{email:"a"}`:                    ErrMalformed,
		`{"email":'a'}`:                  ErrMalformed,
		`{"email":"a"`:                   ErrMalformed,
		`{"a":[1}`:                       ErrMalformed,
		`{"email":"a","email":"b"}`:      ErrDuplicateName,
		`{"email":"a","\u0065mail":"b"}`: ErrDuplicateName,
		`{"a":{"b":1,"b":2}}`:            ErrDuplicateName,
		`{"a":[{"b":1,"b":2}]}`:          ErrDuplicateName,
		nested(MaxNesting):               ErrNesting,
		nested(10_000):                   ErrNesting,
		`{}{}`:                           ErrTrailingData,
		`{}x`:                            ErrTrailingData,
		`{}]`:                            ErrTrailingData,
		`[]`:                             ErrNotObject,
		`null`:                           ErrNotObject,
		`"email"`:                        ErrNotObject,
		`1`:                              ErrNotObject,
		`{"x":[1e999]}`:                  ErrMalformed,
		`{"x":[0.1e999]}`:                ErrMalformed,
	} {
		if err := Unmarshal([]byte(body), &params{}); !errors.Is(err, want) {
			t.Errorf("%.60q: %v, want %v", body, err, want)
		}
	}
}

// No error contains a member's value.
func TestUnmarshalWrongType(t *testing.T) {
	for body, name := range map[string]string{
		`{"email":12345678}`: "email", `{"user_metadata":"12345678"}`: "user_metadata", `{"count":12345678.5}`: "count", `{"count":"12345678"}`: "count",
	} {
		err := Unmarshal([]byte(body), &params{})
		var field *FieldError
		if !errors.As(err, &field) || field.Name != name || strings.Contains(err.Error(), "12345678") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{
		`{"email":"a","password":"b"}`, `{"email":"a","email":"b"}`, `{"Email":"a"}`, `{"\u0065mail":"a","email":"b"}`, `[]`, `null`, `{}x`, `{"a":[[[{}]]]}`,
		`{"email":1e999}`, `{"x":-1e999}`, "{\"email\":\"\xff\"}", `{"user_metadata":{"a":{"b":null}}}`, `[1,]`, `{"a":1,}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v struct {
			Email    string         `json:"email"`
			Metadata map[string]any `json:"user_metadata"`
		}
		if err := Unmarshal(b, &v); err != nil {
			if errors.Is(err, ErrNotObject) && !json.Valid(b) {
				t.Errorf("%q is taken for JSON", b)
			}
			return
		}
		// Every JSON parser reads an accepted document the same way.
		var loose map[string]any
		if err := json.Unmarshal(b, &loose); err != nil {
			t.Errorf("%q is accepted: %v", b, err)
		}
		if s, _ := loose["email"].(string); s != v.Email {
			t.Errorf("%q: %q and %q", b, s, v.Email)
		}
	})
}
