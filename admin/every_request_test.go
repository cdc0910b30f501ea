package admin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
)

// nobodysID is an id that does not exist.
const nobodysID = "01a1fb4c-2b13-7a71-806e-d67843451400"

// flaw makes a request wrong, or barely valid.
type flaw struct {
	name  string
	alter func(pattern, body string, headers []string) (string, string, []string)
}

// flawsOf returns the flaws that requests of an operation can have.
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

// A request with a flaw is answered or refused, and never fails: a refusal is a 4xx with a
// code and changes nothing. A body that is no object, has another media type or has a
// revision that is no number is refused.
func TestFlawsAreRefused(t *testing.T) {
	t.Parallel()
	refused := map[string]int{"{": 400, "[]": 400, "text/plain": 415, "If-Match: x": 412, "If-Match: of letters": 412, "Idempotency-Key of nothing": 422, "Idempotency-Key with a space": 422, "Idempotency-Key with another character": 422, "Idempotency-Key of 256 bytes": 422}
	for _, row := range admin.Table() {
		t.Run(row.Pattern, func(t *testing.T) {
			t.Parallel()
			var o *office
			var owner, target *authtest.SignedIn
			for _, f := range flawsOf(row) {
				if o == nil {
					o, target = newScene(t, memstore.New())
					owner = o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
					o.hasPhone(owner, "+4930123456")
					o.Clock.Advance(time.Minute)
				}
				done := func() (n int) {
					for _, e := range o.audit() {
						if e.Record.Operation == row.Pattern {
							n++
						}
					}
					return n
				}
				before := done()
				o.alter = f.alter
				a := o.try(owner, row, target)
				example := examples[row.Pattern]
				want := refused[f.name]
				switch {
				case strings.HasPrefix(f.name, "Idempotency") && !strings.HasPrefix(row.Pattern, "POST "), want == 412 && !row.Revised, want < 412 && !row.Body, want == 415 && (example.body == "" || !row.Body):
					want = 0
				}
				if f.name == "nonsense=1" && (row.Strict || !strings.HasPrefix(row.Pattern, "GET ") && !strings.HasPrefix(row.Pattern, "DELETE ")) {
					want = 422
				}
				switch {
				case a.status >= 500, want != 0 && a.status != want, want == 0 && a.status >= 400 && a.body["code"] == "":
					t.Errorf("%s: %d %v, want %d", f.name, a.status, a.body, want)
				case a.status >= 400 && done() != before:
					t.Errorf("%s: it was done", f.name)
				}
				if a.status < 400 && !row.Reads { // the target is gone for the next request
					o = nil
				}
			}
		})
	}
}

// Invalid and unknown ids name nothing on any store.
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
					want = 200 // a role that nobody has is accepted as well, and the history of a deleted user is shown
				}
				o.alter = f.alter
				if a := o.try(owner, row, target); a.status != want {
					t.Errorf("%s where %s: %d %v", row.Pattern, f.name, a.status, a.body)
				}
			}
		}
	})
}
