package token

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// A revocation of one session affects only that session. A revocation of a user's
// sessions affects all sessions that started before it.
func TestRevocations(t *testing.T) {
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
			d := &Revocations{now: func() time.Time { return now }, life: life, until: map[string]entry{}}
			for _, r := range test.told {
				d.Add(r)
			}
			for i, c := range []Claims{
				{SessionID: "ada-1", UserID: "ada", IssuedAt: ago(3 * time.Minute)},
				{SessionID: "ada-2", UserID: "ada", IssuedAt: ago(time.Minute)},
				{SessionID: "bob-1", UserID: "bob", IssuedAt: ago(time.Minute)},
			} {
				if got := d.revoked(&c); got != test.ended[i] {
					t.Errorf("%s: ended %t", c.SessionID, got)
				}
			}
		})
	}
}

// Expired revocations are deleted.
func TestExpiredRevocations(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	d := &Revocations{now: func() time.Time { return now }, life: time.Minute, until: map[string]entry{}}
	d.Add(store.Revocation{SessionID: "first", At: now})
	now = now.Add(2 * time.Minute)
	d.Add(store.Revocation{SessionID: "second", At: now})
	if _, ok := d.until["second"]; !ok || len(d.until) != 1 {
		t.Errorf("%v", d.until)
	}
}

// Tokens are stale by their revisions: tokens from before a change always, tokens from
// after it never, even within one second.
func TestStaleTokens(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	const life = 10 * time.Minute
	token := func(user string, u, roles int64, names ...string) verified {
		return verified{Claims{UserID: user, SessionID: user + "-1", IssuedAt: now, Roles: names}, Revisions{user: u, roles: roles}}
	}
	user, role := store.Revocation{UserID: "ada", Stale: 3, At: now}, store.Revocation{Role: "editor", Stale: 7, At: now}
	for name, test := range map[string]struct {
		told  []store.Revocation
		token verified
		stale bool
	}{
		"made before":                      {[]store.Revocation{user}, token("ada", 2, 0), true},
		"made after, in the same second":   {[]store.Revocation{user}, token("ada", 3, 0), false},
		"made after a later change":        {[]store.Revocation{user}, token("ada", 9, 0), false},
		"somebody else's":                  {[]store.Revocation{user}, token("bob", 2, 0), false},
		"without revisions":                {[]store.Revocation{user}, verified{claims: Claims{UserID: "ada"}}, true},
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
			d := &Revocations{now: func() time.Time { return now }, life: life, until: map[string]entry{}}
			for _, r := range test.told {
				d.Add(r)
			}
			if got := d.Stale(&test.token.claims, test.token.revisions); got != test.stale {
				t.Errorf("stale %t", got)
			}
			if all := test.told[0].All; d.revoked(&test.token.claims) != all {
				t.Errorf("ended %t", !all)
			}
		})
	}
}

// idOf returns the id of a session that started at a time.
func idOf(at time.Time, last byte) string {
	id := uuid.UUID{6: 0x70, 8: 0x80, 15: last}
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:6], ms[2:])
	return id.String()
}

// A revocation of all sessions affects neither later sessions nor the spared one. The
// start of a session is in its id, or else in its token.
func TestRevocationOfAllSessions(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	before, same, after := now.Add(-time.Millisecond), now, now.Add(time.Millisecond)
	random := uuid.MustParse("9b2cf1a0-0000-4000-8000-000000000001").String()
	d := &Revocations{now: func() time.Time { return now.Add(time.Second) }, life: time.Hour, until: map[string]entry{}}
	if d.revoked(&Claims{SessionID: "s", UserID: "ada", IssuedAt: now}) {
		t.Error("ended before anything was told")
	}
	d.Add(store.Revocation{UserID: "bob", At: now})
	if d.revoked(&Claims{SessionID: "s", UserID: "ada"}) {
		t.Error("of a token that tells no time, ended with somebody else's")
	}
	d.Add(store.Revocation{All: true, UserID: "ignored", Spared: idOf(before, 9), At: now})
	for name, c := range map[string]struct {
		claims Claims
		ended  bool
	}{
		"began before":                     {Claims{SessionID: idOf(before, 1), IssuedAt: now.Add(time.Minute)}, true},
		"began in that instant":            {Claims{SessionID: idOf(same, 1), IssuedAt: now.Add(time.Minute)}, true},
		"began after":                      {Claims{SessionID: idOf(after, 1), IssuedAt: now}, false},
		"spared":                           {Claims{SessionID: idOf(before, 9), IssuedAt: now}, false},
		"of an id that tells nothing":      {Claims{SessionID: random, IssuedAt: now}, true},
		"of such an id, made after":        {Claims{SessionID: random, IssuedAt: now.Add(time.Second)}, false},
		"of no id":                         {Claims{SessionID: "s", IssuedAt: now}, true},
		"of no id, made after":             {Claims{SessionID: "s", IssuedAt: now.Add(time.Second)}, false},
		"of one called like everybody":     {Claims{SessionID: "s", UserID: "ignored", IssuedAt: now.Add(time.Second)}, false},
		"by an actor whose began before":   {Claims{SessionID: idOf(after, 1), IssuedAt: now, Impersonator: &store.SessionRef{ID: idOf(before, 2), UserID: "eve"}}, true},
		"by an actor whose began after":    {Claims{SessionID: idOf(after, 1), IssuedAt: now, Impersonator: &store.SessionRef{ID: idOf(after, 2), UserID: "eve"}}, false},
		"by the actor who is spared":       {Claims{SessionID: idOf(after, 1), IssuedAt: now, Impersonator: &store.SessionRef{ID: idOf(before, 9), UserID: "eve"}}, false},
		"that began before, by the spared": {Claims{SessionID: idOf(before, 1), IssuedAt: now, Impersonator: &store.SessionRef{ID: idOf(before, 9), UserID: "eve"}}, true},
	} {
		if got := d.revoked(&c.claims); got != c.ended {
			t.Errorf("%s: ended %t", name, got)
		}
		err := d.check(&c.claims, Revisions{})
		if c.ended != errors.Is(err, ErrSessionEnded) || !c.ended && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The token of an impersonation depends on both users: a revocation or change for either
// ends it, and so does any change of roles. A refresh cannot renew it; it can renew other
// tokens.
func TestRevocationOfImpersonations(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	acting := Claims{
		UserID: "ada", SessionID: "i", IssuedAt: now, Roles: []string{"author"}, Impersonator: &store.SessionRef{ID: "s", UserID: "eve"},
	}
	rests := Revisions{user: 3, roles: 5, actor: 7}
	itself := acting
	itself.Impersonator = nil
	for name, c := range map[string]struct {
		told           store.Revocation
		acting, itself error
	}{
		"the impersonation ends":     {store.Revocation{SessionID: "i", At: now}, ErrSessionEnded, ErrSessionEnded},
		"the user's sessions end":    {store.Revocation{UserID: "ada", At: now}, ErrSessionEnded, ErrSessionEnded},
		"the actor's session ends":   {store.Revocation{SessionID: "s", At: now}, ErrSessionEnded, nil},
		"the actor's sessions end":   {store.Revocation{UserID: "eve", At: now}, ErrSessionEnded, nil},
		"another's sessions end":     {store.Revocation{UserID: "bob", At: now}, nil, nil},
		"another session ends":       {store.Revocation{SessionID: "t", UserID: "eve", At: now}, nil, nil},
		"the user changes":           {store.Revocation{UserID: "ada", Stale: 4, At: now}, ErrSessionEnded, ErrStale},
		"the user has not changed":   {store.Revocation{UserID: "ada", Stale: 3, At: now}, nil, nil},
		"the actor changes":          {store.Revocation{UserID: "eve", Stale: 8, At: now}, ErrSessionEnded, nil},
		"the actor has not changed":  {store.Revocation{UserID: "eve", Stale: 7, At: now}, nil, nil},
		"the user's role changes":    {store.Revocation{Role: "author", Stale: 6, At: now}, ErrSessionEnded, ErrStale},
		"the role has not changed":   {store.Revocation{Role: "author", Stale: 5, At: now}, nil, nil},
		"another role changes":       {store.Revocation{Role: "editor", Stale: 6, At: now}, ErrSessionEnded, nil},
		"another role did before":    {store.Revocation{Role: "editor", Stale: 5, At: now}, nil, nil},
		"another user changes":       {store.Revocation{UserID: "bob", Stale: 99, At: now}, nil, nil},
		"a role of the actor's name": {store.Revocation{Role: "eve", Stale: 5, At: now}, nil, nil},
	} {
		d := &Revocations{now: func() time.Time { return now }, life: time.Hour, until: map[string]entry{}}
		d.Add(c.told)
		for who, want := range map[*Claims]error{&acting: c.acting, &itself: c.itself} {
			if err := d.check(who, rests); !errors.Is(err, want) {
				t.Errorf("%s, acting %t: %v, want %v", name, who == &acting, err, want)
			}
		}
	}
}
