package host

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// Links makes links for operators, and invitations.
type Links interface {
	// Link makes a link for a user, in a change that the store is given here. Errors:
	// validation_failed (the account has no such address, or needs no such link),
	// method_disabled, user_banned, redirect_not_allowed, and the store's.
	Link(ctx context.Context, c *store.Change, t LinkType, userID, redirectTo string) (MadeLink, error)
	// SendLink is Link, except that only the user sees the link: it is mailed, or texted,
	// and draws from the limits of messages. It returns the id of the message.
	SendLink(ctx context.Context, c *store.Change, send *Send, t LinkType, userID, redirectTo string) (string, error)
	// JudgeLinks sets the function that decides whether the maker of a link could still
	// make it, and on which conditions. Its error is invalid_token or an outage.
	JudgeLinks(judge func(ctx context.Context, maker LinkMaker, u store.User) (Terms, error))

	// CleanInvitation checks an invitation, and fills in the fields that follow from it.
	// A life of 0 is seven days. Errors: validation_failed, redirect_not_allowed.
	CleanInvitation(inv Invitation, life time.Duration) (Invitation, error)
	// Invite stores an invitation, which has passed CleanInvitation, and encloses its mail.
	// It replaces the invitation whose hash is seen (empty: there is none). Errors: rate_limited, ErrStale if another invitation waits by now, and the
	// store's.
	Invite(ctx context.Context, c *store.Change, send *Send, inv Invitation, seen []byte) error
	// Invitations lists the invitations that wait, newest first, or the invitation with an
	// id. next continues the list. The hashes are for WithdrawInvitation.
	Invitations(ctx context.Context, id string, after *store.InvitationCursor, limit int) (list []Invitation, hashes [][]byte, next *store.InvitationCursor, err error)
	// WithdrawInvitation uses an invitation up without effect. ErrNotFound if there is
	// none any more.
	WithdrawInvitation(ctx context.Context, c store.Change, hash []byte) error
	// JudgeInvitations sets the function that decides whether an invitation may still be
	// accepted. Its error is invalid_token or an outage.
	JudgeInvitations(judge func(context.Context, Invitation) (Terms, error))

	// PutFirstOwnerLink stores the link of the first owner in place of an older one, and
	// returns it. ErrOwned if there has been an owner.
	PutFirstOwnerLink(ctx context.Context, c store.Change) (string, error)
	// FirstOwnerRoutes are the page of that link and the route it posts to, below /admin.
	FirstOwnerRoutes() []Route
	// BecomeFirstOwner is POST /admin/first-owner, for pages.
	BecomeFirstOwner(ctx context.Context, by store.SessionRef, secret string) (store.User, error)
}

// Invitation is an invitation to an address that waits to be accepted.
type Invitation struct {
	ID         string         `json:"id"` // follows from the address, of which there is one at a time
	Email      string         `json:"email"`
	Roles      []string       `json:"roles"`
	Metadata   map[string]any `json:"metadata"` // becomes the account's app_metadata, merged into what is there (RFC 7396)
	RedirectTo string         `json:"redirect_to"`
	By         store.Actor    `json:"by"` // in whose name it is: who made it, or sent it again last
	CreatedAt  time.Time      `json:"created_at"`
	SentAt     time.Time      `json:"sent_at"`
	ExpiresAt  time.Time      `json:"expires_at"`
}

// Terms are the conditions under which an invitation or an operator's link is still
// valid.
type Terms struct {
	IfRoles *int64
	IfUsers []store.UserAt
	IfKey   *store.KeyRef // the key it was made with
}

// LinkType is what a link or code is for.
type LinkType string

// The types.
const (
	LinkVerify    LinkType = "verify"     // confirms the account's address
	LinkReset     LinkType = "reset"      // chooses a new password
	LinkMagicLink LinkType = "magic_link" // signs in
	LinkInvite    LinkType = "invite"     // chooses the first password of an account that has none
	LinkCode      LinkType = "code"       // a code by text, which signs in; there is no link
)

// MadeLink is a link that an operator had made. It has no code, because a code is checked
// before its link, and so the link's maker, is known.
type MadeLink struct {
	URL       string
	ExpiresAt time.Time
}

// LinkMaker is who was given a link for somebody else. The link is of use only while they
// could still make it.
type LinkMaker struct {
	By                 store.Actor `json:"by"`
	CredentialRevision int64       `json:"credential_revision"` // of the link's account, when it was made
}
