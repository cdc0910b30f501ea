package auth

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/authmount/auth/store"
	"github.com/google/uuid"
)

// idOf is the id of a session that began at a time, as far as such ids tell it.
func idOf(at time.Time, last byte) string {
	id := uuid.UUID{6: 0x70, 8: 0x80, 15: last}
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:6], ms[2:])
	return id.String()
}

// Where everybody's sessions have ended, those that began later go on, and the one that
// is spared; when one began, its id tells, or else its token.
func TestDenylistOfEverybody(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	before, same, after := now.Add(-time.Millisecond), now, now.Add(time.Millisecond)
	random := uuid.MustParse("9b2cf1a0-0000-4000-8000-000000000001").String()
	d := &denylist{now: func() time.Time { return now.Add(time.Second) }, life: time.Hour, until: map[string]entry{}}
	if d.ended(&Claims{SessionID: "s", UserID: "ada", IssuedAt: now}) {
		t.Error("ended before anything was told")
	}
	d.add(store.Revocation{UserID: "bob", At: now})
	if d.ended(&Claims{SessionID: "s", UserID: "ada"}) {
		t.Error("of a token that tells no time, ended with somebody else's")
	}
	d.add(store.Revocation{All: true, UserID: "ignored", Spared: idOf(before, 9), At: now})
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
		"by an actor whose began before":   {Claims{SessionID: idOf(after, 1), IssuedAt: now, Impersonator: &SessionRef{ID: idOf(before, 2), UserID: "eve"}}, true},
		"by an actor whose began after":    {Claims{SessionID: idOf(after, 1), IssuedAt: now, Impersonator: &SessionRef{ID: idOf(after, 2), UserID: "eve"}}, false},
		"by the actor who is spared":       {Claims{SessionID: idOf(after, 1), IssuedAt: now, Impersonator: &SessionRef{ID: idOf(before, 9), UserID: "eve"}}, false},
		"that began before, by the spared": {Claims{SessionID: idOf(before, 1), IssuedAt: now, Impersonator: &SessionRef{ID: idOf(before, 9), UserID: "eve"}}, true},
	} {
		if got := d.ended(&c.claims); got != c.ended {
			t.Errorf("%s: ended %t", name, got)
		}
		err := d.judge(&c.claims)
		if c.ended != errors.Is(err, CodeSessionEnded) || !c.ended && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The token of whoever acts as somebody rests on both of them: what ends or changes for
// either ends it, and so does any change of roles. Nothing of that is mended by a
// refresh, which it has not; for others it is.
func TestDenylistOfImpersonations(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	acting := Claims{
		UserID: "ada", SessionID: "i", IssuedAt: now, Roles: []string{"author"}, Impersonator: &SessionRef{ID: "s", UserID: "eve"},
		revisions: tokenRevisions{user: 3, roles: 5, actor: 7},
	}
	itself := acting
	itself.Impersonator = nil
	for name, c := range map[string]struct {
		told           store.Revocation
		acting, itself Code
	}{
		"the impersonation ends":     {store.Revocation{SessionID: "i", At: now}, CodeSessionEnded, CodeSessionEnded},
		"the user's sessions end":    {store.Revocation{UserID: "ada", At: now}, CodeSessionEnded, CodeSessionEnded},
		"the actor's session ends":   {store.Revocation{SessionID: "s", At: now}, CodeSessionEnded, ""},
		"the actor's sessions end":   {store.Revocation{UserID: "eve", At: now}, CodeSessionEnded, ""},
		"another's sessions end":     {store.Revocation{UserID: "bob", At: now}, "", ""},
		"another session ends":       {store.Revocation{SessionID: "t", UserID: "eve", At: now}, "", ""},
		"the user changes":           {store.Revocation{UserID: "ada", Stale: 4, At: now}, CodeSessionEnded, CodeTokenStale},
		"the user has not changed":   {store.Revocation{UserID: "ada", Stale: 3, At: now}, "", ""},
		"the actor changes":          {store.Revocation{UserID: "eve", Stale: 8, At: now}, CodeSessionEnded, ""},
		"the actor has not changed":  {store.Revocation{UserID: "eve", Stale: 7, At: now}, "", ""},
		"the user's role changes":    {store.Revocation{Role: "author", Stale: 6, At: now}, CodeSessionEnded, CodeTokenStale},
		"the role has not changed":   {store.Revocation{Role: "author", Stale: 5, At: now}, "", ""},
		"another role changes":       {store.Revocation{Role: "editor", Stale: 6, At: now}, CodeSessionEnded, ""},
		"another role did before":    {store.Revocation{Role: "editor", Stale: 5, At: now}, "", ""},
		"another user changes":       {store.Revocation{UserID: "bob", Stale: 99, At: now}, "", ""},
		"a role of the actor's name": {store.Revocation{Role: "eve", Stale: 5, At: now}, "", ""},
	} {
		d := &denylist{now: func() time.Time { return now }, life: time.Hour, until: map[string]entry{}}
		d.add(c.told)
		for who, want := range map[*Claims]Code{&acting: c.acting, &itself: c.itself} {
			var got Code
			var e *Error
			if err := d.judge(who); errors.As(err, &e) {
				got = e.Code
			}
			if got != want {
				t.Errorf("%s, acting %t: %q, want %q", name, who == &acting, got, want)
			}
		}
	}
}
