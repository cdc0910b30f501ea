package store

import (
	"context"
	"strings"
	"time"

	"github.com/authmount/auth/internal/keys"
)

// AdminStore keeps the data of package admin: lists of accounts, sessions and invitations,
// imports, jobs, impersonation, and maintenance. The rules of [Store] apply.
//
// A job is work that continues after its request, also in another process. It has chunks of
// work, in order, and their results. Sweep deletes jobs past ExpiresAt, except running
// ones.
//
// An impersonation is a session in which an actor acts as another user. It is not treated
// as a session otherwise: it cannot be refreshed, is in no list of a user's sessions, and
// is no authority for a change ([Authority]). RevokeSessions and UserPatch.Revoke also end
// the user's impersonations that match the filter, and RevokeSessions returns their ids.
// EndEverySession and UserPatch.DropCredentials end all.
//
// An impersonation is live until it has expired or was ended, and only while the actor's
// session is live, neither account is banned, and three revisions are unchanged: the
// CredentialRevision of the actor and of the user, and the revision of the table of roles.
// So it ends with the actor's session, with any change of the permissions of either, and
// with a change of the user's credentials.
type AdminStore interface {
	// ListUsers returns the accounts that match all of a query, in its order, at most
	// Limit, after the place After. The list is empty if there are none. Callers check the
	// query first (UserQuery.Check). No query may scan the whole table; if a combination of
	// filters would read too much, the error is ErrTooBroad.
	ListUsers(ctx context.Context, q UserQuery) ([]User, error)
	// ListUserRows is ListUsers for callers that pass metadata on as JSON without reading
	// it: it returns the same accounts in the same order, and the same errors. The caller
	// owns the returned JSON.
	ListUserRows(ctx context.Context, q UserQuery) ([]UserRow, error)
	// CountUsers counts the accounts that match all of a query and ignores its After and
	// Limit. The count is exact up to CountedExactly. Above that, or if an exact count
	// would read too much, it is an estimate.
	CountUsers(ctx context.Context, q UserQuery) (Total, error)

	// ListSessions returns the live sessions that match all of a query, newest first by
	// (CreatedAt, ID), at most Limit, after the place After. The list is empty if there are
	// none. Callers check the query first (SessionQuery.Check). No query may scan the whole
	// table.
	ListSessions(ctx context.Context, q SessionQuery) ([]Session, error)
	// SessionOrder returns a counter that the store raises with every session that it
	// creates, of any user.
	SessionOrder(ctx context.Context) (int64, error)
	// EndEverySession ends up to Limit live sessions of all users, except Except, that were
	// created while SessionOrder was at most Until, and all impersonations. It returns the
	// number of sessions that it ended. Callers repeat it until that is below Limit. A feed
	// of revocations receives one Revocation with All, not one for each session.
	EndEverySession(ctx context.Context, c EndEverySession) (int, error)

	// ListInvitations returns the live invitations that have a subject, newest first by
	// (CreatedAt, Subject), at most Limit, after the place After. The list is empty if
	// there are none.
	ListInvitations(ctx context.Context, q InvitationQuery) ([]Token, error)

	// CreateUsers creates each of the users that it can. The list that it returns has one
	// entry per user, in their order: nil if the user was created, otherwise the error that
	// CreateUser would have returned (a *ConflictError). A refused user keeps nothing and
	// does not affect the others; of two users in one call with the same unique value, the
	// first is created. If the call itself fails, no user is created and nothing recorded.
	CreateUsers(ctx context.Context, c CreateUsers) ([]error, error)

	// UserDeleted reports whether a user with the id was deleted, so that the id is not given
	// to another account. A user who is created with that id all the same changes nothing
	// about the answer. It is false for an id that is no UUID.
	UserDeleted(ctx context.Context, id string) (bool, error)

	// AnonymizeUser removes everything that identifies a user, at one instant. It applies
	// AnonymizeUser.Patch and deletes the user's sessions, including ended ones, tokens
	// with one of Subjects, and messages that wait for the user or one of Recipients. It
	// rewrites (AnonymizeUser.Rewrite) the events about the user, the events with the user
	// as actor, and the events about no user with a Record.Target in Names. Empty texts in
	// Subjects, Recipients and Names match nothing. The change's own events are recorded
	// unchanged. ErrNotFound if there is no such user.
	AnonymizeUser(ctx context.Context, c AnonymizeUser) (User, error)

	// FillLimits lets each bucket hold at least Cost tokens at Now, or as many as its Rate
	// allows. A fuller bucket and a missing one (which is full) stay as they are. The change
	// is about UserID: ErrNotFound if there is no such user.
	FillLimits(ctx context.Context, c FillLimits) error

	// BeginImpersonation stores an impersonation with the current revisions and changes no
	// data of the user. Errors: ErrNotFound if there is no such user; ErrBanned if either
	// account is banned; ErrSessionEnded if the actor's session is not live or not the
	// actor's; a *ConflictError of "id" if the id is taken. The change is about the user.
	BeginImpersonation(ctx context.Context, c BeginImpersonation) error
	// Impersonation reads an impersonation with its user. Errors: ErrNotFound if there is
	// none; ErrSessionEnded if it is not live.
	Impersonation(ctx context.Context, id string, now time.Time) (Impersonation, User, error)
	// Impersonations lists the impersonations that are live at now, newest first, at most
	// 1000: of one user, or of all if userID is empty. The list is empty if there are none.
	Impersonations(ctx context.Context, userID string, now time.Time) ([]Impersonation, error)
	// EndImpersonation ends an impersonation. Errors: ErrNotFound if there is none;
	// ErrSessionEnded if it is not live. The change is about the user.
	EndImpersonation(ctx context.Context, c EndImpersonation) error

	// PutJob adds a job without chunks, in state JobReceiving. Work starts only with
	// StartJob. A *ConflictError of "job" if the id is taken.
	PutJob(ctx context.Context, j Job) error
	// AddJobChunk adds the next chunk of a job in state JobReceiving (N is Job.Chunks), or
	// several consecutive chunks of one job, all or none, and adds their rows to the job's.
	// It ignores Output. Errors: ErrNotFound if there is no such job; ErrStale if the job is
	// in another state, an N is not the next, or a chunk is of another job.
	AddJobChunk(ctx context.Context, chunks ...JobChunk) error
	// StartJob starts a job in state JobReceiving: it can be claimed from Change.Now on. A
	// job without chunks becomes JobDone at once. Errors: ErrNotFound if there is none or
	// it has expired; ErrStale if it is in another state.
	StartJob(ctx context.Context, c StartJob) (Job, error)
	// Job reads a job. ErrNotFound if there is none, or if it has expired at now and is not
	// running.
	Job(ctx context.Context, id string, now time.Time) (Job, error)
	// JobChunk reads a chunk. ErrNotFound if there is none.
	JobChunk(ctx context.Context, id string, n int) (JobChunk, error)
	// ClaimJob returns a running job whose LeaseUntil has passed, the longest ago first,
	// and moves LeaseUntil to Until. No other caller gets the job before then.
	// ErrNotFound if there is none.
	ClaimJob(ctx context.Context, c ClaimJob) (Job, error)
	// FinishJobChunk stores the result of the chunk Job.Next, deletes its input, adds its
	// counts to the job's, and advances Next and LeaseUntil. After the last chunk the job
	// is JobDone. Errors: ErrStale if N is not Next or the job is not running; ErrNotFound
	// if there is no such job.
	//
	// If the store crashes while the job runs, it may forget that a chunk was finished if
	// all of the chunk's rows were done, and it may forget a claim. The chunk is then done
	// again, and its result stored again. Every other result, and the state JobDone, is
	// durable.
	FinishJobChunk(ctx context.Context, f FinishJobChunk) (Job, error)

	// Diagnose reports the state of the store to operators.
	Diagnose(ctx context.Context) (StoreDiagnosis, error)

	// KeyUses counts the stored data of each key, without changing anything. It may scan
	// whole tables.
	KeyUses(ctx context.Context, now time.Time) (KeyUses, error)
}

// FillLimits is the parameter of AdminStore.FillLimits.
type FillLimits struct {
	Change
	UserID string
	Fill   []Draw // Cost: the tokens that the bucket holds afterwards, more than 0; no two have the same key
}

// CreateUsers is the parameter of AdminStore.CreateUsers. The change is about no single
// user. Its events and messages are recorded if any user was created.
type CreateUsers struct {
	Change
	Users []ImportedRow
}

// ImportedRow is one of the users to create, with everything created in the same step.
type ImportedRow struct {
	User         User // as in NewUser
	PasswordHash string
	Factors      []Factor // as in NewUser
	Events       []Event  // recorded if the user is created
}

// KeyIDSize is the number of bytes that identify a key. Sealed data (Factor.Secret,
// SealedMessage.Body) and the hashes of recovery codes begin with the id of their key.
const KeyIDSize = keys.IDSize

// KeyUses counts stored data by key: by its first KeyIDSize bytes, or all of its bytes if
// there are fewer.
type KeyUses struct {
	Factors       map[string]int // by Factor.Secret; enabled and pending
	RecoveryCodes map[string]int // by their hashes
	Messages      map[string]int // by SealedMessage.Body; only those that have not expired at now
	// OldestRefresh is the earliest RotatedAt of the sessions that are live at now; zero if
	// there are none.
	OldestRefresh time.Time
}

// InvitationQuery picks invitations.
type InvitationQuery struct {
	Subject string            // only those with this subject; empty: all that have one
	Now     time.Time         // required
	After   *InvitationCursor // for the next page
	Limit   int               // required, from 1
}

// InvitationCursor is a place in a list of invitations.
type InvitationCursor struct {
	CreatedAt time.Time `json:"created_at"`
	Subject   string    `json:"subject"`
}

// Cursor returns the place after t.
func (t *Token) Cursor() InvitationCursor { return InvitationCursor{t.CreatedAt, t.Subject} }

// Compare compares places in a list of invitations, for stores that sort in Go.
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

	// Set by the store when the impersonation begins.
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

// StoreDiagnosis is the state of a store. A field that does not apply to the store is zero.
type StoreDiagnosis struct {
	Now     time.Time // by the store's own clock
	Schema  int       // the version of its schema
	Waiting int       // messages that wait to be sent; may be counted only up to 10,000
	Oldest  time.Time // when the oldest of them was recorded
	Feeds   int       // feeds of revocations that this process follows
	FeedAt  time.Time // when one of them last checked
}
