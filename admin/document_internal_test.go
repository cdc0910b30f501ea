package admin

import (
	"strings"
	"testing"
)

// Two files of the document that define one name are a mistake; the last one does not win.
func TestNoNameOfTheDocumentComesTwice(t *testing.T) {
	whole := map[string]any{}
	part := map[string]any{"schemas": map[string]any{"User": 1}, "tags": []any{"a"}}
	if err := join(whole, part); err != nil {
		t.Fatal(err)
	}
	if err := join(whole, part); err == nil || !strings.Contains(err.Error(), "User of schema comes twice") {
		t.Error(err)
	}
}
