package admin_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
)

// Operations that revoke sessions revoke those of the account alone, unless they concern
// all accounts, and never the actor's own. Each change of the permissions of a role or an
// account, and each ban, makes its access tokens stale at once, and revoking all sessions
// revokes the tokens.
func TestSessionsAndTokensAfterwards(t *testing.T) {
	t.Parallel()
	type try struct {
		row  admin.Row
		body string // replaces the example's; empty: the example's
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
	var mu sync.Mutex
	var ends, tokens []string
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
				o.alter = func(pattern, body string, headers []string) (string, string, []string) {
					if c.body != "" {
						body = strings.ReplaceAll(c.body, "$id", target.User.ID)
					}
					if c.row.Pattern != "POST /users/{id}/roles/{role}" { // which gives a role that the account lacks
						pattern = strings.ReplaceAll(pattern, "/roles/writer", "/roles/reader")
					}
					return pattern, body, headers
				}
				o.try(owner, c.row, target)
				everybodys := strings.Contains(c.body, `"all"`) || strings.Contains(c.body, `"before"`) && !strings.Contains(c.body, "user_ids")
				for s, name := range map[*authtest.SignedIn]string{target: "the account's", other: "another's", owner: "the actor's"} {
					token, session := o.stands(s)
					if s == owner && session+token != "goodgood" || s == other && session != "good" && !everybodys || s == other && token == "token_stale" && c.row.Pattern != "PATCH /roles/{role}" {
						t.Errorf("%s: session %s, token %s", name, session, token)
					}
					if s != target {
						continue
					}
					mu.Lock()
					if session != "good" {
						ends = append(ends, c.row.Pattern)
					}
					if token != "good" {
						tokens = append(tokens, c.row.Pattern+": "+token)
					}
					mu.Unlock()
				}
			})
		}
	})
	for _, list := range []struct{ got, want []string }{
		{ends, []string{"DELETE /sessions/{id}", "DELETE /users/{id}/sessions", "POST /sessions/revoke", "POST /users/bulk", "POST /users/{id}/anonymize", "POST /users/{id}/ban", "POST /users/{id}/delete", "POST /users/{id}/password"}},
		{tokens, []string{"DELETE /users/{id}/roles/{role}: token_stale", "PATCH /roles/{role}: token_stale", "POST /sessions/revoke: session_ended", "POST /users/bulk: token_stale", "POST /users/{id}/ban: token_stale", "POST /users/{id}/roles/{role}: token_stale", "PUT /users/{id}/roles: token_stale"}},
	} {
		if got := slices.Compact(slices.Sorted(slices.Values(list.got))); !slices.Equal(got, list.want) {
			t.Errorf("%q, want %q", got, list.want)
		}
	}
}

// stands returns whether the access token and the session of a user are still valid.
func (o *office) stands(s *authtest.SignedIn) (token, session string) {
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
	_, invalid := o.Verify(s.AccessToken)
	_, _, over := o.Store.Session(o.t.Context(), s.SessionID, o.Clock.Now())
	return code(invalid), code(over)
}
