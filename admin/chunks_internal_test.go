package admin

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// A chunk fails as a whole if any part of it cannot be read: the rest is not done.
func TestChunksThatCannotBeRead(t *testing.T) {
	const rows = `[{"row":1,"id":"a","data":{"email":"ada@example.com"}}]`
	for name, c := range map[string]struct{ kind, params, input string }{
		"the action of a selection":  {bulkJob.name, `{`, `["a"]`},
		"the accounts of one":        {bulkJob.name, `{"action":"ban"}`, `{`},
		"what an import does":        {importJob.name, `{`, rows},
		"the rows of one":            {importJob.name, `{}`, `{`},
		"rows that are of selection": {importJob.name, `{}`, `["a"]`},
	} {
		j := store.Job{ID: "j", Kind: c.kind, Params: []byte(c.params)}
		k, _ := kindOf(j)
		work, err := k.plan(t.Context(), &Admin{kit: host.Of(new(auth.Auth))}, j, []byte(c.input))
		if err == nil && work.do != nil {
			_, err = work.do(t.Context(), Actor{}, j)
		}
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		if !errors.As(err, &syntax) && !errors.As(err, &kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
