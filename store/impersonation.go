package store

import (
	"context"
	"time"
)

// ImpersonationStore keeps the sessions in which somebody acts as somebody else. They
// are a kind of their own: no other method of a store reads one as a session, so that
// none can be refreshed, counts among a user's, is made anywhere but here, or gives the
// authority for a change ([Authority]). Only RevokeSessions ends those of its UserID
// that match its filter, too, and returns their ids.
//
// One is live until it was ended or has expired, and only while all of this holds: the
// actor's session is live, neither account is banned, and the actor's and the user's
// CredentialRevision and the revision of the table of roles are what they were when it
// began. So it ends with the actor's session, with any change of what either may do,
// and when the user changes a way in.
type ImpersonationStore interface {
	// BeginImpersonation keeps an impersonation with the revisions of its beginning,
	// and touches nothing of the user's. ErrNotFound if there is no such user,
	// ErrBanned if either is banned, ErrSessionEnded if the actor's session is not
	// live or not the actor's, a *ConflictError of "id" if the id is taken. The change
	// is about the user.
	BeginImpersonation(ctx context.Context, c BeginImpersonation) error
	// Impersonation reads one with its user. ErrNotFound if there is none,
	// ErrSessionEnded if it is not live.
	Impersonation(ctx context.Context, id string, now time.Time) (Impersonation, User, error)
	// Impersonations lists those that are live at now, newest first, at most 1000: of
	// one user, or of all if userID is empty. None is an empty list.
	Impersonations(ctx context.Context, userID string, now time.Time) ([]Impersonation, error)
	// EndImpersonation ends one. ErrNotFound if there is none, ErrSessionEnded if it
	// is not live. The change is about the user.
	EndImpersonation(ctx context.Context, c EndImpersonation) error
}

// Impersonation is a session in which an actor acts as a user.
type Impersonation struct {
	ID             string // a UUID
	UserID         string
	ActorID        string
	ActorSessionID string
	Reason         string
	CreatedAt      time.Time
	ExpiresAt      time.Time
	IP             string
	UserAgent      string

	// What it rests on, set by the store.
	Sequence                    int64 // the user's
	UserRevision, ActorRevision int64 // User.CredentialRevision
	RolesRevision               int64 // RoleTable.Revision
}

// BeginImpersonation is the parameter of ImpersonationStore.BeginImpersonation.
type BeginImpersonation struct {
	Change
	Impersonation Impersonation
}

// EndImpersonation is the parameter of ImpersonationStore.EndImpersonation.
type EndImpersonation struct {
	Change
	ID string
}
