package admin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

var (
	opMakeLink = operation{created: http.StatusCreated, pattern: "POST /links", secret: true, permission: PermCredentials, against: stronger, stepUp: true, fails: linking}
	opSend     = operation{created: http.StatusAccepted, pattern: "POST /users/{id}/send", permission: PermMessagesSend, against: managing, self: true, fails: append([]auth.Code{auth.CodeRateLimited}, linking...)}

	linking = []auth.Code{auth.CodeMethodDisabled, auth.CodeUserBanned, auth.CodeRedirectNotAllowed}

	linkEndpoints = []endpoint{
		op(opMakeLink, (*Admin).MakeLink),
		op(opSend, func(m *Admin, ctx context.Context, who Actor, p SendParams) (map[string]string, error) {
			id, err := m.Send(ctx, who, p)
			return map[string]string{"message_id": id}, err
		}),
	}
)

// LinkType is what a link or code is for.
type LinkType string

// The types.
const (
	LinkVerify    = LinkType(host.LinkVerify)    // confirms the account's address
	LinkReset     = LinkType(host.LinkReset)     // chooses a new password
	LinkMagicLink = LinkType(host.LinkMagicLink) // signs in
	LinkInvite    = LinkType(host.LinkInvite)    // chooses the first password of an account that has none
	LinkCode      = LinkType(host.LinkCode)      // a code by text, which signs in; there is no link
)

// MadeLink is a link that an operator had made. There is no code beside it: a code is
// judged before it is known which link it belongs to, and so without its maker.
type MadeLink struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// MakeLinkParams ask for a link. The account is named by one of UserID and Email.
type MakeLinkParams struct {
	Type       LinkType `json:"type"` // any but LinkCode
	UserID     string   `json:"user_id"`
	Email      string   `json:"email"`
	RedirectTo string   `json:"redirect_to"` // on the allow-list; may be empty
}

// MakeLink makes a link that lets whoever opens it do for an account what the flow of
// the type does, for the actor to give to its owner. It takes the place of one of the
// type that was mailed before, and is of use only while the actor could make it still. Its
// use has the notices of the flow; the audit log has who made it, and not the link. Errors: CodeUserNotFound, CodeTargetStronger,
// CodeValidationFailed, CodeMethodDisabled, CodeUserBanned, CodeRedirectNotAllowed.
func (m *Admin) MakeLink(ctx context.Context, who Actor, p MakeLinkParams) (MadeLink, error) {
	if (p.UserID == "") == (p.Email == "") {
		return MadeLink{}, m.kit.Invalid("user_id", "or email has to be given, and not both")
	}
	if p.Email != "" {
		if _, err := m.reader(ctx, who, opMakeLink); err != nil { // whose the address is, is not for everybody
			return MadeLink{}, err
		}
		u, err := m.store.User(ctx, store.ByEmail(p.Email))
		if err != nil {
			return MadeLink{}, m.gone(err)
		}
		p.UserID = u.ID
	}
	return carryOut(ctx, m, who, opMakeLink, p.UserID, auth.EventLinkMade, func(t *turn) (MadeLink, error) {
		t.change.Events[0].Event.Method = string(p.Type)
		made, err := m.kit.Link(ctx, &t.change, host.LinkType(p.Type), t.target.ID, p.RedirectTo)
		return MadeLink(made), err
	})
}

// judgeLink tells whether whoever was given a link could still make it: they have to be
// stronger than its account as both are now, as for each operation that lets them in as it.
// What code of the application and people whom it alone knows may do, nobody can tell by
// then: an account that may do anything has to be as it was. Errors: CodeInvalidToken.
func (m *Admin) judgeLink(ctx context.Context, maker host.LinkMaker, u auth.User) (host.Terms, error) {
	held, table, terms, err := m.holdsNow(ctx, maker.By)
	if err != nil {
		return terms, err
	}
	a := &acting{user: &auth.User{ID: maker.By.ID}, permissions: held, roles: table}
	switch {
	case slices.Contains(held, permAll) && (maker.By.Kind == store.ActorSystem || maker.By.Kind == store.ActorExternal):
		if maker.CredentialRevision != u.CredentialRevision && len(permissionsIn(table, u.Roles)) > 0 {
			err = errors.New("the account is stronger than it may have been")
		}
	default:
		if err = m.outranks(a, u, opMakeLink.against); !a.may(opMakeLink.permission) {
			err = errors.New("whoever was given the link may not make one any more")
		}
	}
	if err != nil {
		return terms, m.fail(auth.CodeInvalidToken, err)
	}
	terms.IfUsers = append(terms.IfUsers, auth.UserAt{ID: u.ID, CredentialRevision: &u.CredentialRevision})
	return terms, nil
}

// SendParams have a link or code sent.
type SendParams struct {
	UserID     string   `path:"id"`
	Type       LinkType `json:"type"`
	RedirectTo string   `json:"redirect_to"`
}

// Send has a link or code sent to an account's own address or number, as if its owner
// had asked for it, but for limits by the address of the client: it draws those by whom
// it goes to. It returns the id of the message. Errors: CodeUserNotFound,
// CodeTargetStronger, CodeValidationFailed, CodeMethodDisabled, CodeUserBanned,
// CodeRedirectNotAllowed, CodeRateLimited.
func (m *Admin) Send(ctx context.Context, who Actor, p SendParams) (string, error) {
	var send host.Send
	return carryOut(ctx, m, who, opSend, p.UserID, auth.EventMessageAsked, func(t *turn) (string, error) {
		t.change.Events[0].Event.Method = string(p.Type)
		return m.kit.SendLink(ctx, &t.change, &send, host.LinkType(p.Type), t.target.ID, p.RedirectTo)
	})
}
