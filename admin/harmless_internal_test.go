package admin

import (
	"encoding/json"
	"testing"
)

// Text chosen by strangers is no formula in an export, with any separator.
func TestCellsAreNoFormulas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "Ada": "Ada", "=1+1": "'=1+1", "+49301234": "'+49301234", "-1": "'-1", "@x": "'@x", "＝1": "'＝1", "a=b": "a=b", "a-b": "a-b",
		"Eve;=cmd|'/C calc'!A0;": "Eve;'=cmd|'/C calc'!A0;", "a\t=1": "a\t'=1", "a\n=1": "a\n'=1", "a\r+1": "a\r'+1", `a;"=1"`: `a;"'=1"`, "a; =1": "a; '=1",
		"\t=1": "'\t'=1", "\nx": "'\nx", "\rx": "'\rx", "a; b": "a; b",
	} {
		if got := escapeFormulas(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{`{"a":";=1"}`, `["\t+x","; -x"]`, `{"a":"b"}`, `{";@x":[";＝1"]}`} {
		cell := escapeFormulasJSON(text)
		if formula.MatchString(cell) {
			t.Errorf("%s is a formula", cell)
		}
		var was, is any
		if json.Unmarshal([]byte(text), &was) != nil || json.Unmarshal([]byte(cell), &is) != nil {
			t.Fatal(cell)
		}
		a, _ := json.Marshal(was)
		if b, _ := json.Marshal(is); string(a) != string(b) {
			t.Errorf("%s says something else than %s", cell, text)
		}
	}
}
