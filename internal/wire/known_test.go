package wire_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/authmount/auth/internal/wire"
)

// UnmarshalKnown lists the names that a struct lacks, decoded, and sets fields as
// Unmarshal does.
func TestUnmarshalKnown(t *testing.T) {
	t.Parallel()
	type row struct {
		Name  string   `json:"name"`
		Flag  bool     `json:"flag,omitempty"`
		List  []string `json:"list"`
		inner string
	}
	for body, want := range map[string]struct {
		row
		unknown []string
		err     error
	}{
		`{}`:                                   {},
		`{ "name" : "a b" , "flag" : true }`:   {row: row{Name: "a b", Flag: true}},
		`{"flag":false,"name":null}`:           {},
		`{"name":"é\n\u00e9\"","list":["x"]}`:  {row: row{Name: "é\né\"", List: []string{"x"}}},
		`{"n\u0061me":"a"}`:                    {row: row{Name: "a"}},
		`{"z":1,"Name":"a","inner":"b","":{}}`: {unknown: []string{"", "Name", "inner", "z"}},
		`{"name":1}`:                           {err: &wire.FieldError{Name: "name"}},
		`{"flag":"true"}`:                      {err: &wire.FieldError{Name: "flag"}},
		`{"list":"x"}`:                         {err: &wire.FieldError{Name: "list"}},
		`{"name":"a","name":"b"}`:              {err: wire.ErrDuplicateName},
		`{"z":1,"z":2}`:                        {err: wire.ErrDuplicateName},
		`["name"]`:                             {err: wire.ErrNotObject},
		`{"name":"a}`:                          {err: wire.ErrMalformed},
		`{"name":"` + "\xff" + `"}`:            {err: wire.ErrNotUTF8},
	} {
		var got, same row
		unknown, err := wire.UnmarshalKnown([]byte(body), &got)
		var field, wantField *wire.FieldError
		if errors.As(want.err, &wantField) {
			if !errors.As(err, &field) || field.Name != wantField.Name {
				t.Errorf("%s: %v, want %v", body, err, want.err)
			}
			continue
		}
		if !errors.Is(err, want.err) || want.err == nil && !slices.Equal(unknown, want.unknown) {
			t.Errorf("%s: %q, %v; want %q, %v", body, unknown, err, want.unknown, want.err)
		}
		if want.err != nil {
			continue
		}
		if err := wire.Unmarshal([]byte(body), &same); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		for _, r := range []row{got, same} {
			if r.Name != want.Name || r.Flag != want.Flag || !slices.Equal(r.List, want.List) || r.inner != "" {
				t.Errorf("%s: %+v, want %+v", body, r, want.row)
			}
		}
	}
}
