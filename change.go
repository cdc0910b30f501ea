package auth

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// attempts bounds how often a change is decided anew.
const attempts = 20

// change is the one loop around the store's conditional changes. try reads what
// it decides on, decides, and makes the change on the condition that all of it is
// still so (Change.IfUsers); if it is not (ErrStale), it is called again. What it
// decides against, with an *Error, is returned as it is.
func change[T any](try func() (T, error)) (T, error) {
	for range attempts {
		v, err := try()
		var refused *Error
		if err == nil || errors.As(err, &refused) || !errors.Is(err, store.ErrStale) {
			return v, err
		}
	}
	var none T
	return none, retryAfter(CodeUnavailable, time.Second, store.ErrStale)
}

// Caller says in whose name a method of Auth acts: the person who is signed in
// to a session (see Claims.Caller), or the application (ByApplication). In
// somebody's name a change lands only while that session is live and its user not
// banned, judged at the moment it is stored. Errors: CodeSessionEnded, also
// without a session, and CodeUserBanned.
type Caller struct {
	UserID    string
	SessionID string

	application bool
}

// ByApplication acts upon a user for the application itself, which answers for
// it: no session has to be live, and no sign-in recent.
func ByApplication(userID string) Caller { return Caller{UserID: userID, application: true} }

// session is the session named. One that was left out is one that nobody has, so
// that forgetting it grants nothing.
func (c Caller) session() string { return cmp.Or(c.SessionID, uuid.Nil.String()) }

// authority is in whose name the store is to make a change.
func (c Caller) authority() Authority {
	if c.application {
		return Authority{System: "application"}
	}
	return Authority{Session: &SessionRef{ID: c.session(), UserID: c.UserID}}
}

// byProof is the authority of whoever has just proved who they are.
func byProof() Authority { return Authority{Proof: true} }

// byStranger is the authority of what is done for anybody who asks.
func byStranger(flow string) Authority { return Authority{System: flow} }

// newChange begins a change of no account, or one that no owner has to be told of
// (see newChangeOf), with the events that it records.
func (a *Auth) newChange(ctx context.Context, by Authority, events ...store.OutcomeEvent) store.Change {
	return a.newChangeOf(ctx, by, account{}, events...)
}

// done is an event of a change that comes about.
func done(e Event) store.OutcomeEvent { return store.OutcomeEvent{On: store.OutcomeDone, Event: e} }

// actorOf is who stands behind an event that happens by an authority.
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
		return Actor{} // nobody knows yet
	}
	return Actor{Kind: store.ActorUser, ID: e.UserID, SessionID: e.SessionID}
}

// committed sends the messages of a change that has come about on their way, and
// tells the application's hooks of its events: the same that the store recorded,
// completed by edit with what only the store knew. The request may be over by now.
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

// about fills in the user that a change turned out to be about.
func about(userID string) func(*Event) {
	return func(e *Event) {
		if e.UserID == "" {
			e.UserID = userID
		}
	}
}

// credentialsStill is the condition that a user's ways in are as they were read.
func credentialsStill(u User) UserAt {
	return UserAt{ID: u.ID, CredentialRevision: &u.CredentialRevision}
}

// update applies a patch and tells of it. Errors: ErrStale as it is, for change;
// CodeSessionEnded if the user is gone, and those of storeFailed; a *ConflictError
// is in there.
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
