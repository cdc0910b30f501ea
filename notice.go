package auth

import (
	"context"
	"slices"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// noticeOf returns the kind of the message that notifies an account's owner of an
// event. Every change of a credential has one, and so has the deletion of the account.
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
	case EventTOTPRemoved:
		return KindTOTPRemoved, true
	case EventRecoveryCodesReplaced:
		return KindRecoveryCodesReplaced, true
	case EventRecoveryCodeUsed:
		return KindRecoveryCodeUsed, true
	case EventIdentityLinked:
		return KindIdentityLinked, true
	case EventIdentityUnlinked:
		return KindIdentityUnlinked, true
	case EventPasskeyAdded:
		return KindPasskeyAdded, true
	case EventPasskeyRemoved:
		return KindPasskeyRemoved, true
	case EventPasskeyCounterNotIncreased:
		return KindPasskeyCopied, true
	case EventNewDevice:
		return KindNewDevice, true
	case EventUserDeleted:
		return KindAccountDeleted, true
	case EventUserUnlocked:
		return KindAccountUnlocked, true
	}
	return "", false
}

// account is the account that a change is about, as it was before the change.
type account struct {
	User
	to           string // the new email address or phone number, as the notice shows it
	recoveryLink string // the account recovery link; "": the notice has no link
}

// newChangeOf returns a change of an account, with the events that it records and their
// notices. Notices are sent to the account's former email address, if it has one.
// Operations of administrators (Event.Record) fail if they cannot be recorded; users'
// own operations do not.
func (a *Auth) newChangeOf(ctx context.Context, by Authority, of account, events ...store.OutcomeEvent) store.Change {
	c := store.Change{Now: a.now(), By: by}
	if !slices.ContainsFunc(events, func(e store.OutcomeEvent) bool { return e.Event.Record != nil }) {
		c.Unrecorded = a.recorder.Add // users can sign in while the audit log cannot be written
	}
	for _, e := range events {
		e.Event = a.dated(ctx, e.Event)
		if e.Event.Actor == (Actor{}) {
			e.Event.Actor = actorOf(by, e.Event)
		}
		c.Events = append(c.Events, e)
		k, hasNotice := noticeOf(e.Event.Type)
		switch {
		case e.Event.Reason == reasonSynced: // counters say nothing about synced passkeys
		case hasNotice && of.ID == "":
			c.By = Authority{} // no store accepts it, so that the account cannot be forgotten in code
		case k == KindAccountDeleted && !of.EmailVerified(): // prevents sign-ups and deletions that only cause mail to strangers
		case hasNotice && of.Email != "":
			a.enclose(ctx, &c, outbox.Outgoing{Kind: k, To: of.Email, NewAddress: of.to, Provider: e.Event.Provider, Link: of.recoveryLink, ExpiresIn: recoveryLinkLife}, of.User, nil)
		}
	}
	return c
}
