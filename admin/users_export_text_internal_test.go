package admin

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
)

// oddTexts are texts that are hard to write in text formats.
var oddTexts = []string{
	"", " ", "a", "Ada Lovelace", "a b ", " a", "\u00a0a", "\u3000a", "é", "Ünal", "日本", "\u2028x\u2029", "\x7f", "\x00", "\x1f\x08\x0c", "a\nb", "a\rb", "\tb",
	`"`, `""`, `a"b`, `\`, `\.`, `\..`, `\"`, "a,b", "a;b", "<b>&amp;</b>", "'", "=1", "\xff", "a\xe2\x80", "\ufffd", "{}", `{"a": "b, c: d"}`, "\u0085",
}

// Exported texts are byte for byte the output of encoding/json.
func TestExportedTextsAreThoseOfEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, s := range oddTexts {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendString([]byte("x"), s); string(got) != "x"+string(want) {
			t.Errorf("%q is written %s, want %s", s, got[1:], want)
		}
	}
	all, _ := json.Marshal(oddTexts)
	if got := appendTexts(nil, oddTexts); string(got) != string(all) {
		t.Errorf("a list is %s, want %s", got, all)
	}
	if got := string(appendTexts(appendText(nil, ""), nil)); got != "null[]" {
		t.Errorf("nothing is written %s", got)
	}
}

// Stored metadata are written as encoding/json writes them, with any spacing of the store
// and any unescaped characters.
func TestKeptMetadataAreWrittenAsEncodingJSONDoes(t *testing.T) {
	t.Parallel()
	for _, s := range oddTexts {
		text, err := json.Marshal(map[string]any{"k " + s: []any{s, nil, true, 1.5, -20, map[string]any{}, map[string]any{s: s}}, "l": " , : "})
		if err != nil {
			t.Fatal(err)
		}
		var said any
		if err := json.Unmarshal(text, &said); err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(said)
		if err != nil {
			t.Fatal(err)
		}
		var spaced bytes.Buffer
		e := json.NewEncoder(&spaced)
		e.SetEscapeHTML(false)
		e.SetIndent("", "\t ")
		if err := e.Encode(said); err != nil {
			t.Fatal(err)
		}
		unescaped := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(spaced.String())
		for _, kept := range []string{string(want), spaced.String(), unescaped} {
			if got := appendStored(nil, []byte(kept)); string(got) != string(want) {
				t.Errorf("%s is written %s, want %s", kept, got, want)
			}
		}
	}
	// No store should keep it, and no line of an export ends early.
	for _, kept := range []string{`{"a":"`, `{"a":"\`, "{\"a\":\"\n\"}", "{\"\xff\": \"\xff\"}"} {
		if got := appendStored(nil, []byte(kept)); bytes.ContainsAny(got, "\n\r") || bytes.Contains(got, []byte{0xff}) {
			t.Errorf("%q is written %q", kept, got)
		}
	}
}

// Cells are byte for byte the output of encoding/csv.
func TestExportedCellsAreThoseOfEncodingCSV(t *testing.T) {
	t.Parallel()
	for _, s := range oddTexts {
		var want bytes.Buffer
		w := csv.NewWriter(&want)
		if err := w.Write([]string{s, "end"}); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		for kind, got := range map[string][]byte{"text": appendCell(nil, s), "bytes": appendCell(nil, []byte(s))} {
			if line := string(got) + ",end\n"; line != want.String() {
				t.Errorf("%s %q is written %q, want %q", kind, s, line, want.String())
			}
		}
	}
}

func FuzzExportedTexts(f *testing.F) {
	for _, s := range oddTexts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendString(nil, s); string(got) != string(want) {
			t.Errorf("%q is written %s, want %s", s, got, want)
		}
		if got := appendStored(nil, want); string(got) != string(want) {
			t.Errorf("%s is written %s", want, got)
		}
		var line bytes.Buffer
		w := csv.NewWriter(&line)
		if err := w.Write([]string{s, "end"}); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		if got := string(appendCell(nil, s)) + ",end\n"; got != line.String() {
			t.Errorf("%q is written %q, want %q", s, got, line.String())
		}
	})
}
