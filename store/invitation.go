package store

import (
	"context"
	"strings"
	"time"
)

// InvitationStore lists the tokens of PurposeInvitation, which operators look after.
type InvitationStore interface {
	// ListInvitations returns those that are live and have a subject, newest first in
	// the order of (CreatedAt, Subject), at most Limit of them, after the one that
	// After names. None is an empty list.
	ListInvitations(ctx context.Context, q InvitationQuery) ([]Token, error)
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
