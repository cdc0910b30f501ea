package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// many returns an object of the maximum body size that repeats one piece.
func many(piece string) string {
	const open, end = `{"x":[`, `0]}`
	return open + strings.Repeat(piece, (MaxBody-len(open)-len(end))/len(piece)) + end
}

func manyNames() string {
	var b strings.Builder
	b.WriteString(`{"token":"x"`)
	for i := 0; b.Len() < MaxBody-12; i++ {
		b.WriteString(`,"` + strconv.Itoa(i) + `":0`)
	}
	return b.String() + `}`
}

func costly() map[string]string {
	return map[string]string{
		"small": `{"token":"x"}`, "zeros": many("0,"), "arrays": many("[],"), "objects": many("{},"), "one name each": many(`{"":0},`),
		"floats": many("1e300,"), "strings": many(`"",`), "names": manyNames(),
	}
}

// Allocations do not grow with the number of values in a body, because it is read before
// any key or limit is checked.
func TestUnmarshalAllocates(t *testing.T) {
	for name, body := range costly() {
		if len(body) > MaxBody {
			t.Fatalf("%s: %d bytes", name, len(body))
		}
		b := []byte(body)
		allocs := testing.AllocsPerRun(5, func() {
			var v struct {
				Token string `json:"token"`
			}
			if err := Unmarshal(b, &v); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if allocs > 40 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	for name, body := range costly() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var v struct {
					Token string `json:"token"`
				}
				if err := Unmarshal([]byte(body), &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzUnmarshalByTokens compares the result with a slow reader based on encoding/json's
// tokens.
func FuzzUnmarshalByTokens(f *testing.F) {
	for _, s := range []string{
		`{"email":"a","password":"b"}`, `{"email":"a","email":"b"}`, `{"\u0065mail":"a","email":"b"}`, `[]`, `null`, `{}x`, `{"a":[[[{}]]]}`,
		`{"email":1e999}`, `{"x":-1e-999}`, "{\"email\":\"\xff\"}", `[1,]`, `{"a":1,}`, `{"a":{"b":1,"\u0062":2}}`, `{"\ud800":1,"\udfff":2}`,
		` { "a" : [ true , null, "\\\"" ] } `, `{"a" 1}`, `{"a":[1 2]}`, `{"a":"\x"}`, `{"a":01}`, `{"a":0x1p4}`, "{\"a\":\"\n\"}", `{"a":1_0}`,
		`{"b":{"x":1,"a":2},"a":{"x":1,"a":2},"x":0}`, `{"a":tru}`, strings.Repeat(`{"a":`, 33) + "0" + strings.Repeat("}", 33),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v struct {
			A any `json:"a"`
		}
		err := Unmarshal(b, &v)
		if want := acceptedByTokens(b); (err == nil) != want {
			t.Errorf("%q: %v; accepted by tokens: %v", b, err, want)
		}
	})
}

func acceptedByTokens(body []byte) bool {
	if !utf8.Valid(body) {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if !valueByTokens(dec, 0) {
		return false
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return false
	}
	var members map[string]json.RawMessage
	return json.Unmarshal(body, &members) == nil && members != nil
}

func valueByTokens(dec *json.Decoder, depth int) bool {
	tok, err := dec.Token()
	if err != nil {
		return false
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return true
	}
	if depth++; depth > MaxNesting {
		return false
	}
	seen := map[string]bool{}
	for dec.More() {
		if open == '{' {
			name, err := dec.Token()
			s, _ := name.(string)
			if err != nil || seen[s] {
				return false
			}
			seen[s] = true
		}
		if !valueByTokens(dec, depth) {
			return false
		}
	}
	_, err = dec.Token() // the closing delimiter
	return err == nil
}
