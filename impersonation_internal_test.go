package auth

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

// An impersonation is a session of its user at the lower level, from where it was begun,
// and that alone: whatever a session has besides, this one has not.
func TestImpersonationAsASession(t *testing.T) {
	begun := time.Unix(1767323045, 0).UTC()
	i := store.Impersonation{
		ID: "i", UserID: "ada", ActorID: "eve", ActorSessionID: "s", Reason: "to see", CreatedAt: begun, ExpiresAt: begun.Add(time.Minute),
		IP: "192.0.2.7", UserAgent: "browser", UserRevision: 1, ActorRevision: 2, RolesRevision: 3,
	}
	v := reflect.ValueOf(i)
	for n := range v.NumField() {
		if v.Field(n).IsZero() {
			t.Errorf("nothing is known of %s", v.Type().Field(n).Name)
		}
	}
	want := Session{
		ID: "i", UserID: "ada", AAL: "aal1", AMR: []AMR{{Method: "impersonation", Timestamp: 1767323045}},
		CreatedAt: begun, LastActiveAt: begun, RotatedAt: begun, IdleUntil: i.ExpiresAt, ExpiresAt: i.ExpiresAt, IP: "192.0.2.7", UserAgent: "browser",
	}
	if got := sessionOf(&i); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// oneImpersonation is a store that has one, or an error.
type oneImpersonation struct {
	Store
	store.ImpersonationStore
	i   store.Impersonation
	err error
}

func (s *oneImpersonation) Impersonation(context.Context, string, time.Time) (store.Impersonation, User, error) {
	return s.i, User{ID: s.i.UserID}, s.err
}

// A token of an impersonation is good for the very one that it names: of its user, by
// its actor, in the session that the actor began it in.
func TestImpersonationOfATokenIsItsOwn(t *testing.T) {
	now := func() time.Time { return time.Unix(1767323045, 0) }
	for name, c := range map[string]struct {
		edit func(*store.Impersonation)
		err  error
		want Code
	}{
		"its own":                 {func(*store.Impersonation) {}, nil, ""},
		"of another user":         {func(i *store.Impersonation) { i.UserID = "bob" }, nil, CodeSessionEnded},
		"by another actor":        {func(i *store.Impersonation) { i.ActorID = "bob" }, nil, CodeSessionEnded},
		"in another session":      {func(i *store.Impersonation) { i.ActorSessionID = "other" }, nil, CodeSessionEnded},
		"none":                    {func(*store.Impersonation) {}, store.ErrNotFound, CodeSessionEnded},
		"over":                    {func(*store.Impersonation) {}, store.ErrSessionEnded, CodeSessionEnded},
		"of a store that is away": {func(*store.Impersonation) {}, errors.New("away"), CodeUnavailable},
	} {
		i := store.Impersonation{ID: "i", UserID: "ada", ActorID: "eve", ActorSessionID: "s"}
		c.edit(&i)
		a := &Auth{store: &oneImpersonation{i: i, err: c.err}, cfg: config{now: now}}
		s, u, err := a.currentImpersonation(t.Context(), &Claims{UserID: "ada", SessionID: "i", Impersonator: &SessionRef{UserID: "eve", ID: "s"}})
		switch {
		case c.want == "" && (err != nil || s.ID != "i" || u.ID != "ada"):
			t.Errorf("%s: %+v, %+v, %v", name, s, u, err)
		case c.want != "" && (!errors.Is(err, c.want) || s.ID != "" || u.ID != ""):
			t.Errorf("%s: %+v, %+v, %v", name, s, u, err)
		}
	}
	bare := &Auth{store: &drawing{}, cfg: config{now: now}}
	if _, _, err := bare.currentImpersonation(t.Context(), &Claims{Impersonator: &SessionRef{}}); !errors.Is(err, CodeSessionEnded) {
		t.Errorf("of a store that keeps none: %v", err)
	}
}
