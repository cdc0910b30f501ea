package admin_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
)

// nobodysID is an id that nothing has.
const nobodysID = "01a1fb4c-2b13-7a71-806e-d67843451400"

// flaw is one way in which a request is not as it should be, or is only just.
type flaw struct {
	name  string
	alter func(pattern, body string, headers []string) (string, string, []string)
}

// flawsOf are those that requests of an operation can have.
func flawsOf(row admin.Row) (list []flaw) {
	at := func(address string) {
		list = append(list, flaw{address, func(pattern, body string, headers []string) (string, string, []string) {
			path, query, found := strings.Cut(pattern, "?")
			if found {
				query = "&" + query
			}
			return path + "?" + address + query, body, headers
		}})
	}
	saying := func(text string) {
		list = append(list, flaw{text, func(pattern, _ string, headers []string) (string, string, []string) { return pattern, text, headers }})
	}
	with := func(name string, given ...string) {
		list = append(list, flaw{name, func(pattern, body string, headers []string) (string, string, []string) {
			return pattern, body, append(headers, given...)
		}})
	}
	for _, parameter := range []string{"{id}", "{role}", "{factor}", "{identity}", "{name}"} {
		for _, value := range []string{"none", nobodysID} {
			if strings.Contains(row.Pattern, parameter) {
				list = append(list, flaw{parameter + " is " + value, func(pattern, body string, headers []string) (string, string, []string) {
					said, is := strings.Split(row.Pattern, "/"), strings.Split(pattern, "/")
					for i, part := range said {
						if part == parameter {
							is[i] = value
						}
					}
					return strings.Join(is, "/"), body, headers
				}})
			}
		}
	}
	at("nonsense=1")
	if strings.HasPrefix(row.Pattern, "GET ") {
		for _, query := range []string{"limit=0", "limit=x", "limit=1&limit=2", "cursor=x", "from=x", "format=x", "status=x", "order=x", "sort=x", "ip=x", "before=x", "mfa=x", "limit=1"} {
			at(query)
		}
		return list
	}
	saying("{")
	saying("[]")
	saying(`{"nonsense":1}`)
	with("text/plain", "Content-Type: text/plain")
	with("If-Match: x", "If-Match: x")
	with("If-Match: of letters", `If-Match: "x"`)
	with("Idempotency-Key of nothing", "Idempotency-Key: ")
	if strings.HasPrefix(row.Pattern, "POST ") {
		with("Idempotency-Key with a space", "Idempotency-Key: a b")
		with("Idempotency-Key with another character", "Idempotency-Key: \x7f")
		with("Idempotency-Key of 256 bytes", "Idempotency-Key: "+strings.Repeat("x", 256))
		with("Idempotency-Key of 255 bytes", "Idempotency-Key: "+strings.Repeat("x", 255))
	}
	return list
}

// What is answered to a request with a flaw is written down, for every operation and
// every flaw: one that is not looked at any more, or refused in another way, differs.
// -update writes it.
func TestFlawsAreAnsweredAsWrittenDown(t *testing.T) {
	t.Parallel()
	rows := admin.Table()
	texts := make([]string, len(rows))
	t.Run("rows", func(t *testing.T) {
		for i, row := range rows {
			t.Run(row.Pattern, func(t *testing.T) {
				t.Parallel()
				texts[i] = flawsAnswered(t, row)
			})
		}
	})
	asWrittenDown(t, "flaws", strings.Join(texts, ""))
}

func flawsAnswered(t *testing.T, row admin.Row) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("> " + row.Pattern + "\n")
	var o *office
	var owner, target *authtest.SignedIn
	for _, f := range flawsOf(row) {
		if o == nil {
			o, target = newScene(t, memstore.New())
			owner = o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
			o.hasPhone(owner, "+4930123456")
			o.Clock.Advance(time.Minute)
		}
		o.alter = f.alter
		a := o.try(owner, row, target)
		line := fmt.Sprint(a.status)
		if a.status >= 400 {
			line += fmt.Sprint(" ", a.body["code"])
		}
		if d, ok := a.body["details"].(map[string]any); ok {
			said, err := json.Marshal(d["fields"])
			if err != nil {
				t.Error(err)
			}
			line += " " + string(said)
		}
		fmt.Fprintf(&text, "%.40s: %s\n", f.name, line)
		if a.status < 400 && !row.Reads { // what it is about is not there for the next one any more
			o = nil
		}
	}
	return text.String()
}

// Ids that are none, or nobody's, name nothing on any store.
func TestIDsOfNothing(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, target := newScene(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		for _, row := range admin.Table() {
			for _, f := range flawsOf(row) {
				if !strings.HasPrefix(f.name, "{") || !strings.Contains(f.name, "} is ") {
					continue
				}
				want := 404
				if row.Pattern == "DELETE /users/{id}/roles/{role}" && strings.HasPrefix(f.name, "{role}") || row.Pattern == "GET /users/{id}/events" && strings.HasSuffix(f.name, nobodysID) {
					want = 200 // a role that nobody has is taken as well, and what became of somebody is shown when they are gone
				}
				o.alter = f.alter
				if a := o.try(owner, row, target); a.status != want {
					t.Errorf("%s where %s: %d %v", row.Pattern, f.name, a.status, a.body)
				}
			}
		}
	})
}
