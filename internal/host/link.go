package host

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// Links creates links for operators, and invitations.
type Links interface {
	// Link creates a link for a user in the change c. Errors: validation_failed (the
	// account has no email address for the link, or does not need it), method_disabled,
	// user_banned, redirect_not_allowed, and the store's.
	Link(ctx context.Context, c *store.Change, t LinkType, userID, redirectTo string, maker LinkMaker) (CreatedLink, error)
	// SendLink is Link, but only the user sees the link: it is mailed or sent by SMS, and
	// counts against the limits of messages. It returns the id of the message.
	SendLink(ctx context.Context, c *store.Change, send *Send, t LinkType, userID, redirectTo string) (string, error)
	// CheckLinks sets the function that checks whether the creator of a link could still
	// create it, and returns the conditions. Its error is invalid_token or an outage.
	CheckLinks(judge func(ctx context.Context, maker LinkMaker, u store.User) (Terms, error))

	// CheckInvitation checks an invitation and sets its derived fields. A life of 0 is
	// seven days. Errors: validation_failed, redirect_not_allowed.
	CheckInvitation(inv Invitation, life time.Duration) (Invitation, error)
	// Invite stores an invitation that CheckInvitation returned, and adds its mail to the
	// change. It replaces the invitation with the hash seen (empty: none). Errors:
	// rate_limited, ErrStale if another invitation exists by now, and the store's.
	Invite(ctx context.Context, c *store.Change, send *Send, inv Invitation, seen []byte) error
	// ShowInvitation is Invite for a link that is returned instead of mailed.
	ShowInvitation(ctx context.Context, c store.Change, inv Invitation, seen []byte) (CreatedLink, error)
	// Invitations lists the pending invitations, newest first, or the invitation with an
	// id. next continues the list. The hashes are for WithdrawInvitation.
	Invitations(ctx context.Context, id string, after *store.InvitationCursor, limit int) (list []Invitation, hashes [][]byte, next *store.InvitationCursor, err error)
	// WithdrawInvitation uses an invitation up without effect. Errors: ErrNotFound if it
	// no longer exists.
	WithdrawInvitation(ctx context.Context, c store.Change, hash []byte) error
	// SessionReported reports whether the recovery of a user's account has ended the session
	// with a sequence. It ends what that session created for others.
	SessionReported(ctx context.Context, userID string, sequence int64) (bool, error)

	// CheckInvitations sets the function that checks whether an invitation may still be
	// accepted. Its error is invalid_token or an outage.
	CheckInvitations(judge func(context.Context, Invitation) (Terms, error))

	// PutFirstOwnerLink replaces the link of the first owner and returns the new one.
	// ErrOwned if there has been an owner.
	PutFirstOwnerLink(ctx context.Context, c store.Change) (string, error)
	// FirstOwnerRoutes are the page of that link and the route it posts to, below /admin.
	FirstOwnerRoutes() []Route
	// CheckNoOwner returns auth.CodeRoleInUse if there has ever been an owner.
	CheckNoOwner(ctx context.Context) error
	// BecomeFirstOwner is POST /admin/first-owner, for pages.
	BecomeFirstOwner(ctx context.Context, by store.SessionRef, secret string) (store.User, error)
}

// Invitation is a pending invitation to an email address, or a link for an account without
// one, which is bound to the account (UserID) and its phone number and is never sent.
type Invitation struct {
	ID         string         `json:"id"` // derived from the address, which has at most one invitation
	Email      string         `json:"email"`
	Phone      string         `json:"phone,omitempty"`
	Roles      []string       `json:"roles"`
	Metadata   map[string]any `json:"metadata"` // merged into the account's app_metadata (RFC 7396)
	RedirectTo string         `json:"redirect_to"`
	Locale     string         `json:"locale,omitempty"` // of the message, its page and the new account; "": the reader's
	By         store.Actor    `json:"by"`               // created it, or sent it again last
	CreatedAt  time.Time      `json:"created_at"`
	SentAt     time.Time      `json:"sent_at"`
	ExpiresAt  time.Time      `json:"expires_at"`

	// UserID is the account whose permissions of an operator the invitation is for; empty:
	// any. Shown means that the link was shown to an operator, and so verifies nothing.
	UserID string `json:"user_id,omitempty"`
	Shown  bool   `json:"shown,omitempty"`

	// ByAccepted is User.AcceptedSequence of a user who created it: a new acceptance by that
	// user ends it.
	ByAccepted int64 `json:"by_accepted,omitempty"`
	BySequence int64 `json:"by_sequence,omitempty"` // of the user's session: see SessionReported
	// AddressSequence is of the address of UserID, or of its phone number without one, when the
	// link was made: the same address set again is another one.
	AddressSequence int64 `json:"address_sequence,omitempty"`
}

// Terms are the conditions under which an invitation or an operator's link is valid.
type Terms struct {
	IfRoles *int64
	IfUsers []store.UserAt
	IfKey   *store.KeyRef // the key that created it

	NeedsFactor bool // the admin side asks the holder of the roles for a second factor
}

// LinkType is the purpose of a link or code.
type LinkType string

// The types of links.
const (
	LinkVerify    LinkType = "verify"     // verifies the account's email address
	LinkReset     LinkType = "reset"      // sets a new password
	LinkMagicLink LinkType = "magic_link" // signs in
	LinkInvite    LinkType = "invite"     // sets the first password of an account
	LinkAccept    LinkType = "accept"     // accepts the permissions of an operator: an invitation of the account
	LinkCode      LinkType = "code"       // a code by SMS that signs in, without a link
)

// CreatedLink is a link that an operator created. It has no code, because a code is checked
// before its link, and so the link's creator, is known.
type CreatedLink struct {
	URL       string
	ExpiresAt time.Time
}

// LinkMaker is the creator of a link for another user. The link is valid only while the
// creator could still create it.
type LinkMaker struct {
	By                 store.Actor `json:"by"`
	ByAccepted         int64       `json:"by_accepted,omitempty"` // as for Invitation
	BySequence         int64       `json:"by_sequence,omitempty"` // as for Invitation
	CredentialRevision int64       `json:"credential_revision"`   // of the link's account when the link was created
}
