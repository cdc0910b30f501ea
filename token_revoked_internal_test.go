package auth

import (
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

// A session's end is told by its id with its user's, and ends that session only.
// What is told of a user alone ends all sessions that began until then.
func TestDenylist(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	const life = 10 * time.Minute
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, test := range map[string]struct {
		told  []store.Revocation
		ended []bool // of ada's first and second session, and of bob's
	}{
		"nothing":                          {nil, []bool{false, false, false}},
		"about nobody":                     {[]store.Revocation{{At: now}}, []bool{false, false, false}},
		"a session":                        {[]store.Revocation{{SessionID: "ada-1", At: now}}, []bool{true, false, false}},
		"a session of a user":              {[]store.Revocation{{SessionID: "ada-1", UserID: "ada", At: now}}, []bool{true, false, false}},
		"all of a user":                    {[]store.Revocation{{UserID: "ada", At: now}}, []bool{true, true, false}},
		"all that began before the second": {[]store.Revocation{{UserID: "ada", At: ago(2 * time.Minute)}}, []bool{true, false, false}},
		"told again, the newer first":      {[]store.Revocation{{UserID: "ada", At: now}, {UserID: "ada", At: ago(2 * time.Minute)}}, []bool{true, true, false}},
		"two":                              {[]store.Revocation{{SessionID: "ada-2", UserID: "ada", At: now}, {UserID: "bob", At: now}}, []bool{false, true, true}},
		"too long ago":                     {[]store.Revocation{{SessionID: "ada-1", UserID: "ada", At: ago(life)}, {UserID: "bob", At: ago(life)}}, []bool{false, false, false}},
		"just not too long ago":            {[]store.Revocation{{SessionID: "ada-1", UserID: "ada", At: ago(life - 1)}}, []bool{true, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &denylist{now: func() time.Time { return now }, life: life, until: map[string]entry{}}
			for _, r := range test.told {
				d.add(r)
			}
			for i, c := range []Claims{
				{SessionID: "ada-1", UserID: "ada", IssuedAt: ago(3 * time.Minute)},
				{SessionID: "ada-2", UserID: "ada", IssuedAt: ago(time.Minute)},
				{SessionID: "bob-1", UserID: "bob", IssuedAt: ago(time.Minute)},
			} {
				if got := d.ended(&c); got != test.ended[i] {
					t.Errorf("%s: ended %t", c.SessionID, got)
				}
			}
		})
	}
}

// What is over is forgotten.
func TestDenylistForgets(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	d := &denylist{now: func() time.Time { return now }, life: time.Minute, until: map[string]entry{}}
	d.add(store.Revocation{SessionID: "first", At: now})
	now = now.Add(2 * time.Minute)
	d.add(store.Revocation{SessionID: "second", At: now})
	if _, ok := d.until["second"]; !ok || len(d.until) != 1 {
		t.Errorf("%v", d.until)
	}
}

// Tokens are stale by the revisions that they rest on: what was made before a change
// always, and what was made after it never, within one second as well.
func TestDenylistStale(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	const life = 10 * time.Minute
	token := func(user string, u, roles int64, names ...string) *Claims {
		return &Claims{UserID: user, SessionID: user + "-1", IssuedAt: now, Roles: names, revisions: tokenRevisions{user: u, roles: roles}}
	}
	user, role := store.Revocation{UserID: "ada", Stale: 3, At: now}, store.Revocation{Role: "editor", Stale: 7, At: now}
	for name, test := range map[string]struct {
		told  []store.Revocation
		token *Claims
		stale bool
	}{
		"made before":                      {[]store.Revocation{user}, token("ada", 2, 0), true},
		"made after, in the same second":   {[]store.Revocation{user}, token("ada", 3, 0), false},
		"made after a later change":        {[]store.Revocation{user}, token("ada", 9, 0), false},
		"somebody else's":                  {[]store.Revocation{user}, token("bob", 2, 0), false},
		"without revisions":                {[]store.Revocation{user}, &Claims{UserID: "ada"}, true},
		"told again, the newer first":      {[]store.Revocation{{UserID: "ada", Stale: 5, At: now}, user}, token("ada", 4, 0), true},
		"a role, made before":              {[]store.Revocation{role}, token("ada", 9, 6, "author", "editor"), true},
		"a role, made after":               {[]store.Revocation{role}, token("ada", 0, 7, "editor"), false},
		"a role that it has not":           {[]store.Revocation{role}, token("ada", 0, 6, "author"), false},
		"a user of the name of a role":     {[]store.Revocation{role}, token("editor", 0, 6), false},
		"too long ago":                     {[]store.Revocation{{UserID: "ada", Stale: 3, At: now.Add(-life)}}, token("ada", 2, 0), false},
		"what is stale has not ended":      {[]store.Revocation{user, role}, token("bob", 0, 0), false},
		"everybody's sessions end instead": {[]store.Revocation{{All: true, At: now}}, token("ada", 0, 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			d := &denylist{now: func() time.Time { return now }, life: life, until: map[string]entry{}}
			for _, r := range test.told {
				d.add(r)
			}
			if got := d.isStale(test.token); got != test.stale {
				t.Errorf("stale %t", got)
			}
			if all := test.told[0].All; d.ended(test.token) != all {
				t.Errorf("ended %t", !all)
			}
		})
	}
}
