package auth

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// What somebody has to have shown lately before they may change how an account is
// signed in to is asked for here, by the operations themselves: endpoints and
// callers from Go are held to the same. The application answers for what it does
// (ByApplication).

// acting reads in whose name a call acts: the user and the live session; the zero
// session for the application.
func (a *Auth) acting(ctx context.Context, by Caller) (current, error) {
	if by.application {
		u, err := a.store.User(ctx, store.ByID(by.UserID))
		if err != nil {
			err = goneOr(CodeSessionEnded, err)
		}
		return current{user: u}, err
	}
	s, u, err := a.liveSession(ctx, by, CodeSessionEnded)
	return current{session: s, user: u}, err
}

// actingLately is acting by somebody who proved who they are lately:
// CodeReauthNeeded.
func (a *Auth) actingLately(ctx context.Context, by Caller) (current, error) {
	me, err := a.acting(ctx, by)
	if err == nil && !by.application && !a.fresh(me.session) {
		err = fail(CodeReauthNeeded, nil)
	}
	return me, err
}

// showedFactor asks for a second factor that was shown on the session lately.
// Errors: CodeInsufficientAAL, CodeReauthNeeded.
func (a *Auth) showedFactor(by Caller, s Session) error {
	switch {
	case by.application || a.freshAAL2(s):
		return nil
	case s.AAL != store.LevelAAL2:
		return fail(CodeInsufficientAAL, nil)
	}
	return fail(CodeReauthNeeded, nil)
}

// fresh tells whether somebody proved who they are on this session lately.
func (a *Auth) fresh(s Session) bool {
	var newest int64
	for _, m := range s.AMR {
		newest = max(newest, m.Timestamp)
	}
	return a.now().Sub(time.Unix(newest, 0)) < freshFor
}

// freshAAL2 tells whether the second factor was shown on this session lately.
func (a *Auth) freshAAL2(s Session) bool {
	for _, m := range s.AMR {
		if (m.Method == methodTOTP || m.Method == methodRecovery) && a.now().Sub(time.Unix(m.Timestamp, 0)) < freshFor {
			return s.AAL == store.LevelAAL2
		}
	}
	return false
}
