package difference

import (
	"errors"
	"slices"
	"testing"
	"time"
)

type inner struct {
	Name  string
	Other *int
}

type outer struct {
	ID    string
	At    time.Time
	Roles []string
	In    inner
	Data  []byte
	Meta  map[string]any
	plain int
}

func TestOf(t *testing.T) {
	t.Parallel()
	at, one, two := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 1, 2
	for name, c := range map[string]struct {
		got, want any
		lines     []string
	}{
		"equal":                {outer{ID: "a", At: at}, outer{ID: "a", At: at}, nil},
		"a value":              {"ended", "none", []string{` = "ended", want "none"`}},
		"another type":         {1, "1", []string{` = 1, want "1"`}},
		"nothing":              {nil, errors.New("gone"), []string{` = nil, want "gone"`}},
		"members":              {outer{ID: "a", plain: 1}, outer{ID: "b", plain: 2}, []string{`.ID = "a", want "b"`, `.plain = 1, want 2`}},
		"a time":               {outer{At: at}, outer{At: at.Add(time.Microsecond)}, []string{`.At = 2026-01-02T03:04:05Z, want 2026-01-02T03:04:05.000001Z`}},
		"elements":             {outer{Roles: []string{"a", "b"}}, outer{Roles: []string{"c"}}, []string{`.Roles[0] = "a", want "c"`, `.Roles[1] = "b", want none`}},
		"an element too few":   {[]inner{}, []inner{{Name: "a"}}, []string{`[0] = none, want {Name: "a"}`}},
		"nil is not empty":     {outer{Roles: nil}, outer{Roles: []string{}}, []string{`.Roles = nil, want []`}},
		"what is pointed to":   {inner{Other: &one}, inner{Other: &two}, []string{`.Other = 1, want 2`}},
		"no pointer":           {inner{}, inner{Other: &two}, []string{`.Other = nil, want 2`}},
		"bytes":                {outer{Data: []byte("a")}, outer{Data: []byte("b")}, []string{`.Data = "a", want "b"`}},
		"entries":              {map[string]any{"a": 1, "b": 2}, map[string]any{"b": 3, "c": []any{"x"}}, []string{`["a"] = 1, want none`, `["b"] = 2, want 3`, `["c"] = none, want ["x"]`}},
		"values in interfaces": {outer{Meta: map[string]any{"k": "v"}}, outer{Meta: map[string]any{"k": "w"}}, []string{`.Meta["k"] = "v", want "w"`}},
		"an error":             {errors.New("one"), errors.New("two"), []string{`.s = "one", want "two"`}},
	} {
		if got := Of(c.got, c.want); !slices.Equal(got, c.lines) {
			t.Errorf("%s: %q, want %q", name, got, c.lines)
		}
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	if got, want := Show(&outer{ID: "a", In: inner{Name: "n"}, Roles: []string{"r"}}), `{ID: "a", Roles: ["r"], In: {Name: "n"}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// Map entries are sorted, so that two runs print the same.
	for want, v := range map[string]any{"nil": map[string]int(nil), "{}": map[string]int{}, `{"a": 1, "b": 2, "c": 3, "d": 4}`: map[string]int{"d": 4, "b": 2, "c": 3, "a": 1}} {
		if got := Show(v); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
