package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

var (
	opMakeLink = operation{spends: true, created: http.StatusCreated, pattern: "POST /links", secret: true, permission: PermCredentials, against: stronger, adds: true, stepUp: true, fails: linking}
	opSend     = operation{spends: true, created: http.StatusAccepted, pattern: "POST /users/{id}/send", permission: PermMessagesSend, against: managing, self: true, fails: append([]auth.Code{auth.CodeRateLimited}, linking...)}

	linking = []auth.Code{auth.CodeMethodDisabled, auth.CodeUserBanned, auth.CodeRedirectNotAllowed}

	linkEndpoints = []endpoint{
		op(opMakeLink, (*Admin).MakeLink),
		op(opSend, func(m *Admin, ctx context.Context, who Actor, p SendParams) (map[string]string, error) {
			id, err := m.Send(ctx, who, p)
			return map[string]string{"message_id": id}, err
		}),
	}
)

// LinkType is the purpose of a link or code.
type LinkType string

// The types of links and codes.
const (
	LinkVerify    = LinkType(host.LinkVerify)    // verifies the account's email address
	LinkReset     = LinkType(host.LinkReset)     // chooses a new password
	LinkMagicLink = LinkType(host.LinkMagicLink) // signs in
	LinkInvite    = LinkType(host.LinkInvite)    // chooses the first password of an account that has none
	LinkAccept    = LinkType(host.LinkAccept)    // accepts the permissions of an operator
	LinkCode      = LinkType(host.LinkCode)      // a code by SMS, which signs in; there is no link
)

// MadeLink is a link that an operator created. It has no code, because checking a code does
// not reveal its creator.
type MadeLink struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// MakeLinkParams describe a link. Either UserID or Email names the account.
type MakeLinkParams struct {
	Type       LinkType `json:"type"` // any but LinkCode
	UserID     string   `json:"user_id" is:"id"`
	Email      string   `json:"email"`
	RedirectTo string   `json:"redirect_to"` // on the allow-list; may be empty
}

// MakeLink creates a link that does for an account the same as the flow of its type, for
// the actor to give to the owner. It replaces a link of the type that was sent before,
// and is valid only while the actor could still create it. Its use sends the notices of
// the flow; the audit log records its creator, and not the link. Errors:
// CodeUserNotFound, CodeTargetStronger, CodeValidationFailed, CodeMethodDisabled,
// CodeUserBanned, CodeRedirectNotAllowed, CodeMissingPermission (LinkAccept is shown only to
// people with "*"), CodeRateLimited.
func (m *Admin) MakeLink(ctx context.Context, who Actor, p MakeLinkParams) (MadeLink, error) {
	if (p.UserID == "") == (p.Email == "") {
		return MadeLink{}, m.kit.Invalid("user_id", "or email has to be given, and not both")
	}
	if p.Email != "" {
		if _, err := m.reader(ctx, who, opMakeLink); err != nil { // the owner of an email address is confidential
			return MadeLink{}, err
		}
		u, err := m.store.User(ctx, store.ByEmail(p.Email))
		if err != nil {
			return MadeLink{}, m.notFound(err)
		}
		p.UserID = u.ID
	}
	return carryOut(ctx, m, who, opMakeLink, p.UserID, auth.EventLinkMade, func(t *attempt) (MadeLink, error) {
		t.change.Events[0].Event.Method = string(p.Type)
		if p.Type == LinkAccept {
			inv, seen, err := m.acceptance(ctx, t)
			if err == nil {
				err = m.mayAccept(t, true)
			}
			if err != nil {
				return MadeLink{}, err
			}
			link, err := m.kit.ShowInvitation(ctx, t.change, inv, seen)
			return MadeLink(link), err
		}
		link, err := m.kit.Link(ctx, &t.change, host.LinkType(p.Type), t.target.ID, p.RedirectTo, host.LinkMaker{ByAccepted: t.accepted(), BySequence: t.session.Sequence})
		return MadeLink(link), err
	})
}

// checkLink checks whether the creator of a link could still create it: by their present
// permissions the creator has to be stronger than the account, as for every operation
// that gives a way to sign in. The present permissions of application code, and of people
// whom only the application knows, are unknown; for them an account with permissions has
// to be unchanged. Errors: CodeInvalidToken.
func (m *Admin) checkLink(ctx context.Context, maker host.LinkMaker, u auth.User) (host.Terms, error) {
	a, terms, err := m.holdsNow(ctx, maker.By, maker.ByAccepted, maker.BySequence)
	if err != nil {
		return terms, err
	}
	switch {
	case a.system(): // or an external person
		if maker.CredentialRevision != u.CredentialRevision && len(m.strengthIn(a.roles, u.Roles)) > 0 {
			err = errors.New("the account has gained permissions since the link was created")
		}
	default:
		if err = m.outranks(a, u, opMakeLink.against); !a.may(opMakeLink.permission) {
			err = errors.New("the operator who received the link may no longer create one")
		}
	}
	if err != nil {
		return terms, m.fail(auth.CodeInvalidToken, err)
	}
	terms.IfUsers = append(terms.IfUsers, auth.UserAt{ID: u.ID, CredentialRevision: &u.CredentialRevision})
	return terms, nil
}

// SendParams describe a link or code to send.
type SendParams struct {
	UserID     string   `path:"id"`
	Type       LinkType `json:"type"`
	RedirectTo string   `json:"redirect_to"`
}

// Send sends a link or code to an account's own email address or phone number, as if its
// owner had requested it, and returns the id of the message. LinkAccept needs the
// permission to give the account's roles. The message counts against the limits of the
// recipient, but not against those of the client's IP address. Errors: CodeUserNotFound,
// CodeTargetStronger, CodeValidationFailed, CodeMethodDisabled, CodeUserBanned,
// CodeRedirectNotAllowed, CodeRateLimited.
func (m *Admin) Send(ctx context.Context, who Actor, p SendParams) (string, error) {
	var send host.Send
	return carryOut(ctx, m, who, opSend, p.UserID, auth.EventMessageAsked, func(t *attempt) (string, error) {
		t.change.Events[0].Event.Method = string(p.Type)
		if p.Type == LinkAccept {
			err := m.sendAcceptance(ctx, t, &send)
			return messageOf(t.change), err
		}
		return m.kit.SendLink(ctx, &t.change, &send, host.LinkType(p.Type), t.target.ID, p.RedirectTo)
	})
}

// messageOf returns the id of the last message of a change.
func messageOf(c store.Change) string {
	if len(c.Messages) == 0 {
		return ""
	}
	return c.Messages[len(c.Messages)-1].ID
}
