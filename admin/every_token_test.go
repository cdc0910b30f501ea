package admin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
)

// What becomes of access tokens that are about, and of sessions, is written down for
// every operation: one that ends sessions and tells nobody lets their tokens in for as
// long as they live. -update writes it.
func TestTokensAfterwardsAsWrittenDown(t *testing.T) {
	t.Parallel()
	type try struct {
		row  admin.Row
		body string // in place of the example's; empty: that
	}
	var tries []try
	for _, row := range admin.Table() {
		if row.Reads {
			continue
		}
		tries = append(tries, try{row, ""})
		switch row.Pattern {
		case "POST /sessions/revoke":
			for _, body := range []string{`{"all":true}`, `{"ip":"192.0.2.1"}`, `{"before":"2026-01-02T03:05:00Z"}`, `{"before":"2027-01-01T00:00:00Z"}`, `{"user_ids":["$id"],"before":"2027-01-01T00:00:00Z"}`} {
				tries = append(tries, try{row, body})
			}
		case "POST /users/bulk":
			for _, action := range []string{`"unban"`, `"delete"`, `"anonymize"`, `"revoke_sessions"`, `"add_role","role":"writer"`, `"remove_role","role":"reader"`} {
				tries = append(tries, try{row, `{"action":` + action + `,"ids":["$id"],"reason":"x"}`})
			}
		case "PATCH /users/{id}":
			for _, body := range []string{`{"email":"new@example.com"}`, `{"email":"new@example.com","email_verified":true}`, `{"email_verified":false}`, `{"phone":"+4930555"}`} {
				tries = append(tries, try{row, body})
			}
		case "POST /users/{id}/password":
			tries = append(tries, try{row, `{"password":null}`})
		case "PUT /users/{id}/roles":
			tries = append(tries, try{row, `{"roles":["writer"]}`})
		}
	}
	texts := make([]string, len(tries))
	t.Run("rows", func(t *testing.T) {
		for i, c := range tries {
			t.Run(fmt.Sprint(c.row.Pattern, i), func(t *testing.T) {
				t.Parallel()
				o, _ := newScene(t, memstore.New())
				o.permit("reader", notes)
				target := o.LoginAs(t, "ada@example.com", authtest.Roles("reader"))
				other := o.LoginAs(t, "bob@example.com", authtest.Roles("reader"))
				owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
				o.hasPhone(owner, "+4930123456")
				o.Clock.Advance(2 * time.Minute)
				texts[i] = "> " + strings.TrimSpace(c.row.Pattern+" "+c.body) + "\n"
				o.alter = func(pattern, body string, headers []string) (string, string, []string) {
					if c.body != "" {
						body = strings.ReplaceAll(c.body, "$id", target.User.ID)
					}
					return strings.ReplaceAll(pattern, "/roles/writer", "/roles/reader"), body, headers
				}
				o.try(owner, c.row, target)
				texts[i] += fmt.Sprintf("the account's: %s\nanother's: %s\nthe actor's: %s\n", o.stands(target), o.stands(other), o.stands(owner))
			})
		}
	})
	asWrittenDown(t, "tokens", strings.Join(texts, ""))
}

// stands tells what the access token and the session of somebody are good for.
func (o *office) stands(s *authtest.SignedIn) string {
	o.t.Helper()
	code := func(err error) string {
		var e *auth.Error
		switch {
		case err == nil:
			return "good"
		case errors.As(err, &e):
			return string(e.Code)
		}
		return err.Error()
	}
	_, token := o.Verify(s.AccessToken)
	_, _, session := o.Store.Session(o.t.Context(), s.SessionID, o.Clock.Now())
	return "token " + code(token) + ", session " + code(session)
}
