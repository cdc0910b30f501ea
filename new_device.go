package auth

import (
	"context"
	"errors"
	"slices"

	"github.com/authmount/auth/store"
)

// A session on a device that the account was not seen on is told to its owner, in
// the step that makes it. The store judges the device (NewDevice); every flow that
// makes a session of an account that was there before goes through makeSession.

// makeSession has a session made by store, as the change c. If the store refuses it
// for its device, it is made once more with what the owner is told; at once, if the
// device is expected to be new. It tells of what has come about.
func (a *Auth) makeSession(ctx context.Context, c store.Change, u User, s Session, expected bool, st func(store.Change, store.NewDevice) (User, error)) (User, error) {
	if !expected {
		made, err := st(c, store.NewDevice{Refuse: true})
		if !errors.Is(err, store.ErrNewDevice) {
			if err == nil {
				a.committed(ctx, c, store.OutcomeDone, nil)
			}
			return made, err
		}
	}
	secret, t := a.newStopLink(u, s, &u.CredentialRevision)
	link := ""
	if secret != "" {
		link = a.linkURL(KindNewDevice, secret)
	}
	told := a.newChangeOf(ctx, c.By, account{User: u, stop: link}, done(Event{Type: EventNewDevice, UserID: u.ID, SessionID: s.ID}))
	with := c
	with.Events = append(slices.Clip(c.Events), store.OutcomeEvent{On: store.OutcomeNewDevice, Event: told.Events[0].Event})
	isNew := false
	on := store.NewDevice{Messages: told.Messages, Made: func() { isNew = true }}
	if link != "" && len(told.Messages) > 0 { // a link that nobody is told need not be stored
		on.Tokens = []store.Token{t}
	}
	made, err := st(with, on)
	if err == nil {
		a.committed(ctx, c, store.OutcomeDone, nil)
		if isNew {
			a.committed(ctx, told, store.OutcomeDone, nil)
		}
	}
	return made, err
}
