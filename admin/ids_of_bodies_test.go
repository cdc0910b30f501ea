package admin_test

import (
	"strings"
	"testing"

	"github.com/authmount/auth"
)

// An id in a body is read like one in a path: in every form of a UUID, and refused if no
// store can keep it, also together with an Idempotency-Key.
func TestIDsInBodies(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.operator("owner@example.com", "*")
		ada := o.LoginAs(t, "ada@example.com")
		upper := strings.ToUpper(ada.User.ID)
		const key = "Idempotency-Key: k"
		for i, body := range []string{`{"action":"ban","reason":"x","ids":["%"]}`, `{"user_ids":["%"],"reason":"x"}`, `{"type":"reset","user_id":"%"}`, `{"user_id":"%","permission":"notes.write"}`} {
			at := "POST " + []string{"/users/bulk", "/sessions/revoke", "/links", "/check"}[i]
			for _, headers := range [][]string{nil, {key}} {
				o.do(owner, at, strings.Replace(body, "%", `a\u0000b`, 1), headers...).want(422, auth.CodeValidationFailed)
			}
			o.do(owner, "POST /users/a%00b/ban", `{"reason":"x"}`, key).want(422, auth.CodeValidationFailed)
		}
		a := o.do(owner, "POST /users/bulk", `{"action":"unban","ids":["`+ada.User.ID+`","`+upper+`"]}`, key+"2").want(200)
		if a.body["done"] != 1.0 || strings.Contains(a.text, upper) {
			t.Errorf("two forms of one id: %s", a.text)
		}
		o.do(owner, "POST /check", `{"user_id":"`+upper+`","permission":"notes.write"}`).want(200)
		o.do(owner, "POST /links", `{"type":"magic_link","user_id":"`+upper+`"}`).want(201)
	})
}
