package auth_test

import (
	"context"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// Where everybody has to set up a second factor, a sign-in whose account changes while it
// is asked for one makes no session.
func TestSignInIsAskedMeanwhile(t *testing.T) {
	st := newStore(t)
	tap := storetap.New(st)
	u := authtest.NewOn(t, st).LoginAs(t, "ada@example.com").User // while nobody had to
	e := authtest.NewOn(t, tap, auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	var once sync.Once
	tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
		if method == "PutToken" {
			once.Do(func() {
				number := "+4930123456"
				c := store.UpdateUser{Change: store.Change{Now: e.Clock.Now(), By: auth.Authority{System: "test"}}, UserID: u.ID, Patch: store.UserPatch{Phone: &number}}
				if _, err := st.UpdateUser(ctx, c); err != nil {
					t.Error(err)
				}
			})
		}
	}})
	tokens, err := e.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	if tokens != nil || err == nil {
		t.Errorf("signed in: %v", err)
	}
	list, err := st.Sessions(t.Context(), u.ID, e.Clock.Now())
	if err != nil || len(list) != 1 {
		t.Errorf("%d sessions, want the one before: %v", len(list), err)
	}
}
