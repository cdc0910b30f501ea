package auth

import (
	"context"
	"slices"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// noticeOf is which message tells the owner of an account of an event. Every
// change of a way in has one, and so has the end of all of them.
func noticeOf(e EventType) (k Kind, ok bool) {
	switch e {
	case EventPasswordChanged, EventPasswordReset:
		return KindPasswordChanged, true
	case EventEmailChanged:
		return KindEmailChanged, true
	case EventPhoneVerified, EventPhoneChanged:
		return KindPhoneChanged, true
	case EventTakenOver:
		return KindTakenOver, true
	case EventMFAEnabled:
		return KindMFAEnabled, true
	case EventMFADisabled:
		return KindMFADisabled, true
	case EventRecoveryCodesReplaced:
		return KindRecoveryCodesReplaced, true
	case EventRecoveryCodeUsed:
		return KindRecoveryCodeUsed, true
	case EventIdentityLinked:
		return KindIdentityLinked, true
	case EventIdentityUnlinked:
		return KindIdentityUnlinked, true
	case EventNewDevice:
		return KindNewDevice, true
	case EventUserDeleted:
		return KindAccountDeleted, true
	}
	return "", false
}

// account is whom a change is about, as they were before it.
type account struct {
	User
	to   string // what a change of address or number leads to, as the notice shows it
	stop string // the link by which its reader stops it; none: the notice has no link
}

// newChangeOf begins a change of an account, with the events that it records and
// the notices that they call for: to the address that the account had before, or,
// if it had none, to nobody. Operations of the admin side (Event.Record) fail if they cannot be recorded;
// what people do themselves does not.
func (a *Auth) newChangeOf(ctx context.Context, by Authority, of account, events ...store.OutcomeEvent) store.Change {
	c := store.Change{Now: a.now(), By: by}
	if !slices.ContainsFunc(events, func(e store.OutcomeEvent) bool { return e.Event.Record != nil }) {
		c.Unrecorded = a.recorder.Add // nobody is shut out because the audit log cannot be written
	}
	for _, e := range events {
		e.Event = a.dated(ctx, e.Event)
		if e.Event.Actor == (Actor{}) {
			e.Event.Actor = actorOf(by, e.Event)
		}
		c.Events = append(c.Events, e)
		k, told := noticeOf(e.Event.Type)
		switch {
		case told && of.ID == "":
			c.By = Authority{} // no store takes it: nobody forgets whom to tell
		case k == KindAccountDeleted && !of.EmailVerified(): // nobody signs up and deletes to have mails sent
		case told && of.Email != "":
			a.enclose(ctx, &c, outbox.Outgoing{Kind: k, To: of.Email, NewAddress: of.to, Provider: e.Event.Provider, Link: of.stop, ExpiresIn: stopLife}, of.User, nil)
		}
	}
	return c
}
