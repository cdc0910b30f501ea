package auth

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// Metadata are as large as they are with their numbers written out, which is how Postgres
// keeps and returns them: nobody makes accounts that are many times as large to read as
// they were to write.
func TestMetadataAreBoundedWithNumbersWrittenOut(t *testing.T) {
	list := func(n int, v any) map[string]any {
		all := make([]any, n)
		for i := range all {
			all[i] = v
		}
		return map[string]any{"a": all}
	}
	for name, c := range map[string]struct {
		m    map[string]any
		good bool
	}{
		"small ones":                 {list(2000, 5.5), true},
		"the smallest, few":          {list(40, math.SmallestNonzeroFloat64), true},
		"the smallest, many":         {list(60, math.SmallestNonzeroFloat64), false},
		"the largest, few":           {list(50, math.MaxFloat64), true},
		"the largest, many":          {list(60, -math.MaxFloat64), false},
		"large ones of Go, few":      {list(50, json.Number("1e308")), true},
		"large ones of Go, many":     {list(60, json.Number("1E+308")), false},
		"beyond what numbers can be": {list(1, json.Number("1e400")), false},
		"texts that look so":         {list(1500, "1e308"), true},
		"names that look so":         {map[string]any{strings.Repeat("1e308 ", 2500): 1e300}, true},
	} {
		if err := checkMetadata(c.m); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
