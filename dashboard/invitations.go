package dashboard

import (
	"cmp"
	"net/url"

	"github.com/authmount/auth/admin"
)

func showInvitations(v *visit) (*page, error) {
	o, err := find(v, v.query(), v.d.adm.Invitations)
	if err != nil {
		return nil, err
	}
	p := &page{Title: v.t("Invitations"), Buttons: []link{v.to("Invite", "POST /invitations", "/invitations/new", false)}}
	t := &table{Name: v.t("Invitations"), Columns: v.columns("Address", "Roles", "By", "Sent", "Ends", ""), Empty: v.t("No open invitations. Invite somebody."), Next: v.next(o)}
	var inviters []string
	for _, i := range o.list("invitations") {
		if by := i.of("invited_by"); by.str("kind") == "user" {
			inviters = append(inviters, by.str("id"))
		}
	}
	names := v.names(inviters...)
	for _, i := range o.list("invitations") {
		at := "/invitations/" + url.PathEscape(i.str("id"))
		links := []link{v.to("Withdraw", "DELETE /invitations/{id}", at+"/withdraw", true)}
		if i.str("email") != "" { // a link for a phone number is never sent
			links = append([]link{v.to("Send again", "POST /invitations/{id}/resend", at+"/resend", false)}, links...)
		}
		t.Rows = append(t.Rows, row{Cells: []cell{{Text: cmp.Or(i.str("email"), i.str("phone"))}, {Tags: words(i.texts("roles"))}, v.actorCell(i.of("invited_by"), names), {Time: i.time("sent_at")}, {Time: i.time("expires_at")}, {Links: links}}})
	}
	p.Blocks = []block{{Table: t}}
	return p, nil
}

func invitationActions() []action {
	back := func(v *visit) string { return v.path("/invitations") }
	return []action{
		{
			at: "/invitations/new", boxes: []string{"roles"}, operation: "POST /invitations", title: "Invite", text: "We email a link to this address. With it, the person creates an account. It is valid for seven days.", submit: "Invite", done: "The invitation was sent.", back: back,
			fields: func(v *visit) ([]field, error) {
				roles, err := v.roles(nil)
				return []field{{Name: "email", Label: v.t("Email address"), Type: "email", Required: true}, roles,
					v.locales(),
					{Name: "redirect_to", Label: v.t("Where the page goes next"), Type: "url", List: v.redirects(), Hint: v.t("An address from the list of allowed redirects")}}, err
			},
			do: func(v *visit) (any, error) {
				return v.d.adm.Invite(v.ctx, v.actor, admin.InviteParams{Email: v.formValue("email"), Roles: v.formValues("roles"), RedirectTo: v.formValue("redirect_to"), Locale: v.formValue("locale")})
			},
		},
		{at: "/invitations/{id}/resend", operation: "POST /invitations/{id}/resend", title: "Send the invitation again", submit: "Send", done: "The invitation was sent.", back: back,
			do: func(v *visit) (any, error) { return v.d.adm.InviteAgain(v.ctx, v.actor, v.id()) }},
		{at: "/invitations/{id}/withdraw", operation: "DELETE /invitations/{id}", title: "Withdraw the invitation", submit: "Withdraw", danger: true, done: "The invitation was withdrawn.", back: back,
			do: func(v *visit) (any, error) { return nil, v.d.adm.WithdrawInvitation(v.ctx, v.actor, v.id()) }},
	}
}

func showMessages(v *visit) (*page, error) {
	p := &page{Title: v.t("Messages"), Under: v.t("Messages of the last seven days, without their text."), Filters: v.filters(
		field{Name: "state", Label: "State", Type: "select", Options: v.choices("", "Any", "queued", "Queued", "sent", "Sent", "failed", "Failed", "dropped", "Dropped")},
		field{Name: "kind", Label: "Kind", Type: "text"},
		field{Name: "user", Label: "User (address or id)", Type: "text"},
		field{Name: "from", Label: "From", Type: "date"},
		field{Name: "to", Label: "Before", Type: "date"},
	)}
	o, err := listed(v, p, v.byAddress(v.query("state", "kind", "user", "from", "to"), "user"), v.d.adm.Messages)
	if err != nil {
		return nil, err
	}
	t := &table{Name: v.t("Messages"), Columns: v.columns("When", "Kind", "To", "State", "What went wrong", ""), Empty: v.t("No matching messages."), Next: v.next(o)}
	for _, m := range o.list("messages") {
		state := tag{v.t(m.str("state")), map[string]string{"sent": "good", "failed": "bad", "queued": "warn"}[m.str("state")]}
		c := cell{}
		if m.str("state") == "failed" {
			c.Links = []link{v.to("Try again", "POST /messages/{id}/retry", "/messages/"+url.PathEscape(m.str("id"))+"/retry", false)}
		}
		t.Rows = append(t.Rows, row{Cells: []cell{{Time: m.time("created_at")}, {Text: m.str("kind")}, v.userCell(m.str("user_id"), m.str("to")), {Tags: []tag{state}}, {Text: m.str("error")}, c}})
	}
	p.Blocks = append(p.Blocks, block{Table: t})
	return p, nil
}

func messageActions() []action {
	return []action{{at: "/messages/{id}/retry", operation: "POST /messages/{id}/retry", title: "Send the message again", submit: "Send", done: "It was sent.", back: func(v *visit) string { return v.path("/messages") },
		do: func(v *visit) (any, error) { return nil, v.d.adm.RetryMessage(v.ctx, v.actor, v.id()) }}}
}
