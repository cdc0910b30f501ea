package store

import (
	"context"
	"strings"
	"time"

	"github.com/authmount/auth/internal/keys"
)

// AdminStore is what the admin side of a service rests on: lists of accounts, sessions
// and invitations, imports, jobs, impersonation, and upkeep. The rules of [Store] apply.
//
// Jobs are work that goes on by itself after its request has ended, also in another
// process: chunks of work, in their order, and their results. Sweep deletes jobs that are
// over (ExpiresAt), but for running ones.
//
// Impersonations are the sessions in which an actor acts as another user. They are a
// kind of their own: no other method of a store reads one as a session, so that none can
// be refreshed, counts among a user's, is made anywhere but here, or gives the authority
// for a change ([Authority]). Only RevokeSessions ends those of its UserID that match
// its filter, too, and returns their ids. One is live until it was ended or has expired,
// and only while all of this holds: the actor's session is live, neither account is
// banned, and the actor's and the user's CredentialRevision and the revision of the table
// of roles are what they were when it began. So it ends with the actor's session, with
// any change of what either may do, and when the user's credentials change.
type AdminStore interface {
	// ListUsers returns the accounts that match all of a query, in its order, at most
	// Limit of them, after the one that After names. None is an empty list. The query
	// has passed its Check. No plan of it reads the table whole. A combination of
	// filters that would read too much is ErrTooBroad.
	ListUsers(ctx context.Context, q UserQuery) ([]User, error)
	// ListUserRows is ListUsers for whoever passes metadata on and does not look into
	// them: the same accounts in the same order, and the same errors. The metadata are
	// the caller's own copies.
	ListUserRows(ctx context.Context, q UserQuery) ([]UserRow, error)
	// CountUsers counts the accounts that match all of a query, wherever its cursor
	// is and whatever its Limit: exactly up to CountedExactly, and beyond that, or if
	// it would read too much, by an estimate.
	CountUsers(ctx context.Context, q UserQuery) (Total, error)

	// ListSessions returns the live sessions that match all of a query, newest first by
	// (CreatedAt, ID), at most Limit of them, after the one that After names. None is
	// an empty list. The query has passed its Check. No plan of it reads the table
	// whole.
	ListSessions(ctx context.Context, q SessionQuery) ([]Session, error)
	// SessionOrder returns a number that the store raises with every session that it
	// creates, of any user.
	SessionOrder(ctx context.Context) (int64, error)
	// EndEverySession ends up to Limit live sessions of all users that were created while
	// SessionOrder was Until or less, except Except, and all impersonations, and returns
	// how many sessions it ended; callers repeat it until that is less than Limit. A feed
	// is told that all of them have ended (Revocation.All), and not of each.
	EndEverySession(ctx context.Context, c EndEverySession) (int, error)

	// ListInvitations returns those that are live and have a subject, newest first in
	// the order of (CreatedAt, Subject), at most Limit of them, after the one that
	// After names. None is an empty list.
	ListInvitations(ctx context.Context, q InvitationQuery) ([]Token, error)

	// CreateUsers creates each of the users, or tells why not: the list it
	// returns has an entry for each, in their order, which is nil if the user was
	// created, and otherwise what CreateUser would have returned (a
	// *ConflictError). One that is refused keeps nothing and hinders no other; of
	// two in one call that want the same value the first is created. An error of
	// the call itself means that nobody was created and nothing recorded.
	CreateUsers(ctx context.Context, c CreateUsers) ([]error, error)

	// AnonymizeUser removes whatever tells who a user is, at one instant: it applies
	// AnonymizeUser.Patch, deletes the user's sessions, also those that had ended,
	// tokens about Subjects, and messages that wait for the user or Recipients, and
	// rewrites the events about the user, those of which the user is the actor, and
	// those about no user whose Record.Target is one of Names (AnonymizeUser.Rewrite). The change's own events are recorded as they are
	// given. ErrNotFound if there is no such user.
	AnonymizeUser(ctx context.Context, c AnonymizeUser) (User, error)

	// ClearLimits fills the buckets that Keys names, as if nothing was ever drawn
	// from them; one that is not there is no error. The change is about UserID:
	// ErrNotFound if there is no such user.
	ClearLimits(ctx context.Context, c ClearLimits) error

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

	// PutJob adds a job without chunks. Job.State is JobReceiving. It changes nothing
	// else: work begins by StartJob. A *ConflictError of "job" if the id is taken.
	PutJob(ctx context.Context, j Job) error
	// AddJobChunk adds the next chunk (N is Job.Chunks) of a job that is received, or
	// several of one job that follow each other, all of them or none, and their rows to
	// those of the job. ErrNotFound if there is no such job; ErrStale if it is in
	// another state, or an N is not the next.
	AddJobChunk(ctx context.Context, chunks ...JobChunk) error
	// StartJob has a job that was received run: it can be claimed from Change.Now on.
	// ErrNotFound if there is none, or it is over; ErrStale if it is in another state.
	StartJob(ctx context.Context, c StartJob) (Job, error)
	// Job reads a job. ErrNotFound if there is none, or it is over at now.
	Job(ctx context.Context, id string, now time.Time) (Job, error)
	// JobChunk reads a chunk. ErrNotFound if there is none.
	JobChunk(ctx context.Context, id string, n int) (JobChunk, error)
	// ClaimJob picks a running job whose LeaseUntil has come, the longest ago first,
	// and moves that to Until, so that no other caller gets it before. ErrNotFound if
	// there is none.
	ClaimJob(ctx context.Context, c ClaimJob) (Job, error)
	// FinishJobChunk keeps what came of the chunk Job.Next, forgets what was to be
	// done, adds its counts to those of the job, and moves Next and LeaseUntil on;
	// after the last one the job is JobDone. ErrStale if N is not Next or the job does
	// not run; ErrNotFound if there is none. That a chunk is finished whose rows were
	// all done may be forgotten in a crash of the store while the job goes on, and so may
	// a claim: such a chunk is done once more, and what it did is told again. Whatever
	// else was returned is kept, and that the job is done.
	FinishJobChunk(ctx context.Context, f FinishJobChunk) (Job, error)

	// Diagnose reports how the store is doing, for operators.
	Diagnose(ctx context.Context) (StoreDiagnosis, error)

	// KeyUses counts what is kept, without changing anything. It may read whole
	// tables.
	KeyUses(ctx context.Context, now time.Time) (KeyUses, error)
}

// ClearLimits is the parameter of AdminStore.ClearLimits.
type ClearLimits struct {
	Change
	UserID string
	Keys   []string // as in Draw
}

// CreateUsers is the parameter of AdminStore.CreateUsers. The change is about no
// one user; what it records is recorded if anybody was created.
type CreateUsers struct {
	Change
	Users []ImportedRow
}

// ImportedRow is a user to create among others, with what is created in the same
// step.
type ImportedRow struct {
	User         User // as in NewUser
	PasswordHash string
	Factors      []Factor // as in NewUser
	Events       []Event  // recorded if the user is created
}

// KeyIDSize is how many bytes name the key that something was made under. What
// stores keep sealed (Factor.Secret, SealedMessage.Body) and the hashes of
// recovery codes begin with them.
const KeyIDSize = keys.IDSize

// KeyUses are how many there are of what is made under a key, by the first
// KeyIDSize bytes of it, or all if there are fewer.
type KeyUses struct {
	Factors       map[string]int // by Factor.Secret, enabled and pending
	RecoveryCodes map[string]int // by their hashes
	Messages      map[string]int // by SealedMessage.Body, of those that are not over at now (ExpiresAt)
	// OldestRefresh is the earliest RotatedAt of the sessions that are live at
	// now; zero: there are none.
	OldestRefresh time.Time
}

// InvitationQuery picks invitations.
type InvitationQuery struct {
	Subject string            // only the one about this; empty: all that have one
	Now     time.Time         // required
	After   *InvitationCursor // for the next page
	Limit   int               // required, from 1
}

// InvitationCursor is a place in a list of invitations.
type InvitationCursor struct {
	CreatedAt time.Time `json:"created_at"`
	Subject   string    `json:"subject"`
}

// Cursor is the place behind t.
func (t *Token) Cursor() InvitationCursor { return InvitationCursor{t.CreatedAt, t.Subject} }

// Compare is the order of lists of invitations, for stores that sort in Go.
func (c InvitationCursor) Compare(o InvitationCursor) int {
	if at := o.CreatedAt.Compare(c.CreatedAt); at != 0 {
		return at
	}
	return strings.Compare(o.Subject, c.Subject)
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

// BeginImpersonation is the parameter of AdminStore.BeginImpersonation.
type BeginImpersonation struct {
	Change
	Impersonation Impersonation
}

// EndImpersonation is the parameter of AdminStore.EndImpersonation.
type EndImpersonation struct {
	Change
	ID string
}

// StoreDiagnosis is how a store is doing. What does not apply is zero.
type StoreDiagnosis struct {
	Now     time.Time // by the store's own clock
	Schema  int       // the version of its schema
	Waiting int       // messages that wait to be sent, counted up to 10,000
	Oldest  time.Time // when the oldest of them was recorded
	Feeds   int       // feeds of revocations that this process follows
	FeedAt  time.Time // when one of them looked last
}
