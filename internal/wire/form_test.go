package wire

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

func TestCheckForm(t *testing.T) {
	for body, want := range map[string]error{
		"a=b&c=d": nil, "": nil, "a": nil, "a=b&a=c": ErrDuplicateName, "a&a": ErrDuplicateName, "a=%ff": ErrNotUTF8, "%ff=a": ErrNotUTF8,
	} {
		form, err := url.ParseQuery(body)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckForm(form); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", body, err, want)
		}
	}
	if err := CheckForm(url.Values{"a": {"b", "c"}, "d": {"e"}}, "a"); err != nil {
		t.Errorf("boxes of one name: %v", err)
	}
	for _, form := range []url.Values{{"a": {"b"}, "d": {"e", "f"}}, {"a": {"b", "\xff"}}} {
		if CheckForm(form, "a") == nil {
			t.Errorf("%v is taken", form)
		}
	}
}

func TestFillForm(t *testing.T) {
	type fields struct {
		Email  string         `json:"email"`
		Keep   bool           `json:"keep,omitempty"`
		Create *bool          `json:"create"`
		More   map[string]any `json:"more"`
		Hidden string
	}
	yes, no := true, false
	for body, want := range map[string]struct {
		fields
		wrong string // in the error
	}{
		"":                      {},
		"email=a%20b&keep=on":   {fields: fields{Email: "a b", Keep: true}},
		"keep=0&create=true":    {fields: fields{Create: &yes}},
		"create=":               {fields: fields{Create: &no}},
		"create=off&token=x":    {fields: fields{Create: &no}},
		"keep=maybe":            {wrong: `"keep"`},
		"create=maybe":          {wrong: `"create"`},
		"Email=a":               {wrong: `unknown field "Email"`},
		"Hidden=a":              {wrong: `unknown field "Hidden"`},
		"more=a":                {wrong: `unknown field "more"`},
		"=a":                    {wrong: `unknown field ""`},
		strings.Repeat("x", 99): {wrong: strings.Repeat("x", 40) + "…"},
	} {
		form, err := url.ParseQuery(body)
		if err != nil {
			t.Fatal(err)
		}
		got := fields{Email: "before"}
		err = FillForm(form, &got, "token")
		switch {
		case want.wrong != "":
			if err == nil || !strings.Contains(err.Error(), want.wrong) || strings.Contains(err.Error(), "maybe") {
				t.Errorf("%q: %v, want %s", body, err, want.wrong)
			}
		case err != nil || got.Email != want.Email || got.Keep != want.Keep || (got.Create == nil) != (want.Create == nil) || (got.Create != nil && *got.Create != *want.Create):
			t.Errorf("%q: %+v, %v", body, got, err)
		}
	}
}

// Accepted forms have only one reading.
func FuzzFillForm(f *testing.F) {
	for _, s := range []string{"email=a&keep=on", "email=a&email=b", "email=%ff", "x=y", "&&=&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		form, err := url.ParseQuery(body)
		if err != nil || CheckForm(form) != nil {
			return
		}
		var v struct {
			Email string `json:"email"`
			Keep  bool   `json:"keep"`
		}
		if err := FillForm(form, &v); err != nil {
			return
		}
		for name := range form {
			if name != "email" && name != "keep" {
				t.Errorf("%q was taken with %q", body, name)
			}
		}
		if v.Email != form.Get("email") {
			t.Errorf("%q: %q", body, v.Email)
		}
	})
}
