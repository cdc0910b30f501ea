package auth

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// attempts bounds the calls of apply in change.
const attempts = 20

// change is the loop around the store's conditional changes. apply reads the current
// state, decides, and changes it on the condition that it is still the same
// (Change.IfUsers). If it is not (ErrStale), change calls apply again. An *Error of apply
// is returned unchanged.
func change[T any](apply func() (T, error)) (T, error) {
	for range attempts {
		v, err := apply()
		var refused *Error
		if err == nil || errors.As(err, &refused) || !errors.Is(err, store.ErrStale) {
			return v, err
		}
	}
	var none T
	return none, retryAfter(CodeUnavailable, time.Second, store.ErrStale)
}

// Caller is the authority under which a method of Auth acts: a signed-in user's
// session (see Claims.Caller), or the application (ByApplication). A change by a
// session is stored only if at that moment the session is live and its user is not
// banned. Errors: CodeSessionEnded (also without a session), CodeUserBanned, and
// CodeImpersonationForbidden for an operator who acts as the user, who may only call
// Logout.
type Caller struct {
	UserID    string
	SessionID string

	application  bool
	impersonator SessionRef // the operator's session, if SessionID is an impersonation
}

// ByApplication acts on a user for the application, which takes the responsibility.
// It needs no live session and no recent sign-in.
func ByApplication(userID string) Caller { return Caller{UserID: userID, application: true} }

// session returns the session's id. A missing id becomes one that does not exist, so
// that forgetting it grants nothing.
func (c Caller) session() string { return cmp.Or(c.SessionID, uuid.Nil.String()) }

// notActing refuses an operator who acts as the user. Operations call it, if they do not
// call liveSession first, before they check a secret: no attempt of an operator counts
// against the user. Errors: CodeImpersonationForbidden.
func (c Caller) notActing() error {
	if c.impersonator != (SessionRef{}) {
		return fail(CodeImpersonationForbidden, nil)
	}
	return nil
}

// authority returns the store's Authority for a change by c.
func (c Caller) authority() Authority {
	if c.application {
		return Authority{System: "application"}
	}
	return Authority{Session: &SessionRef{ID: c.session(), UserID: c.UserID}}
}

// byAuthentication is the authority of a person who has just authenticated.
func byAuthentication() Authority { return Authority{Proof: true} }

// byFlow is the authority of a flow that anybody may start.
func byFlow(flow string) Authority { return Authority{System: flow} }

// newChange returns a change with its events. It adds no notice to an account's owner;
// see newChangeOf.
func (a *Auth) newChange(ctx context.Context, by Authority, events ...store.OutcomeEvent) store.Change {
	return a.newChangeOf(ctx, by, account{}, events...)
}

// done returns an event that is recorded if the change succeeds.
func done(e Event) store.OutcomeEvent { return store.OutcomeEvent{On: store.OutcomeDone, Event: e} }

// actorOf returns the actor of an event under an authority.
func actorOf(by Authority, e Event) Actor {
	switch {
	case by.Session != nil:
		return Actor{Kind: store.ActorUser, ID: by.Session.UserID, SessionID: by.Session.ID}
	case by.Key != nil:
		return Actor{Kind: store.ActorKey, ID: by.Key.ID}
	case by.System != "":
		return Actor{Kind: store.ActorSystem, ID: by.System}
	case by.External != "":
		return Actor{Kind: store.ActorExternal, ID: by.External}
	}
	if e.UserID == "" {
		return Actor{} // not known yet
	}
	return Actor{Kind: store.ActorUser, ID: e.UserID, SessionID: e.SessionID}
}

// committed sends the messages of a change that has succeeded, and calls the
// application's hooks with its events. edit completes the events with details that
// only the store knew. The request may be over by now.
func (a *Auth) committed(ctx context.Context, c store.Change, on store.Outcome, edit func(*Event)) {
	if on == store.OutcomeDone {
		a.outbox.Enqueue(ctx, c.Messages)
		a.drawNotices(ctx, c)
	}
	for _, e := range c.Events {
		if e.On != on {
			continue
		}
		if edit != nil {
			edit(&e.Event)
		}
		a.emit(ctx, e.Event)
	}
}

// about returns an edit that sets the user of a change.
func about(userID string) func(*Event) {
	return func(e *Event) {
		if e.UserID == "" {
			e.UserID = userID
		}
	}
}

// ifCredentialsUnchanged is the condition that a user's credentials have not changed.
func ifCredentialsUnchanged(u User) UserAt {
	return UserAt{ID: u.ID, CredentialRevision: &u.CredentialRevision}
}

// update applies a patch, and reports it. Errors: ErrStale unchanged, for change;
// CodeSessionEnded if the user does not exist any more, and those of storeFailed,
// which may wrap a *ConflictError.
func (a *Auth) update(ctx context.Context, c store.Change, userID string, p store.UserPatch) (User, error) {
	u, err := a.store.UpdateUser(ctx, store.UpdateUser{Change: c, UserID: userID, Patch: p})
	switch {
	case err == nil:
		a.committed(ctx, c, store.OutcomeDone, nil)
		return u, nil
	case errors.Is(err, store.ErrStale):
		return u, err
	}
	return u, goneOr(CodeSessionEnded, err)
}
