package auth

import (
	"context"
	"errors"
	"slices"
)

// A session on a device that the account was not seen on is told to its owner, in
// the step that makes it. The store judges the device (NewDevice); every flow that
// makes a session of an account that was there before goes through makeSession.

// makeSession has a session made by store, as the change c. If the store refuses it
// for its device, it is made once more with what the owner is told; at once, if the
// device is expected to be new. It tells of what has come about.
func (a *Auth) makeSession(ctx context.Context, c Change, u User, s Session, expected bool, store func(Change, NewDevice) (User, error)) (User, error) {
	if !expected {
		made, err := store(c, NewDevice{Refuse: true})
		if !errors.Is(err, ErrNewDevice) {
			if err == nil {
				a.committed(ctx, c, OutcomeDone, nil)
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
	with.Events = append(slices.Clip(c.Events), OutcomeEvent{OutcomeNewDevice, told.Events[0].Event})
	isNew := false
	on := NewDevice{Messages: told.Messages, Made: func() { isNew = true }}
	if link != "" && len(told.Messages) > 0 { // a link that nobody is told need not be stored
		on.Tokens = []Token{t}
	}
	made, err := store(with, on)
	if err == nil {
		a.committed(ctx, c, OutcomeDone, nil)
		if isNew {
			a.committed(ctx, told, OutcomeDone, nil)
		}
	}
	return made, err
}
