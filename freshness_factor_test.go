package auth_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// lowered is a store whose sessions have shown one factor only, whatever their amr
// says.
type lowered struct {
	auth.Store
	on bool
}

func (l *lowered) Unwrap() auth.Store { return l.Store }

func (l *lowered) Session(ctx context.Context, id string, now time.Time) (auth.Session, auth.User, error) {
	s, u, err := l.Store.Session(ctx, id, now)
	if l.on {
		s.AAL = store.LevelAAL1
	}
	return s, u, err
}

// Recovery codes are replaced, and a second factor is removed, only on a session that
// has shown it: that the account has one is not enough.
func TestFactorsNeedAAL2(t *testing.T) {
	store := &lowered{Store: newStore(t)}
	w := &world{t: t, Env: authtest.NewOn(t, store)}
	in := w.enrol(w.member(adaMail).AccessToken)
	store.on = true
	w.do("POST", "/2fa/recovery-codes", nil, bearer(in.AccessToken)).want(403, auth.CodeInsufficientAAL)
	w.do("POST", "/2fa/disable", nil, bearer(in.AccessToken)).want(403, auth.CodeReauthNeeded)
	store.on = false
	w.do("POST", "/2fa/recovery-codes", nil, bearer(in.AccessToken)).want(200)
}

// The application sets a second factor up for a user without any session; a caller
// without one does not.
func TestApplicationBeginsAnEnrolment(t *testing.T) {
	w := newWorld(t)
	s := w.member(adaMail)
	if _, err := w.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: auth.Caller{UserID: s.User.ID}}); !errors.Is(err, auth.CodeSessionEnded) {
		t.Errorf("a caller without a session: %v", err)
	}
	w.Clock.Advance(time.Hour) // however long ago somebody signed in
	setup, err := w.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: auth.ByApplication(s.User.ID)})
	if err != nil || setup.Secret == "" {
		t.Errorf("%+v, %v", setup, err)
	}
}
