package dashboard

import (
	"cmp"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/store"
)

// toUser leads back to a tab of the account.
func toUser(tab string) func(*visit) string {
	return func(v *visit) string {
		to := v.path("/users/" + url.PathEscape(v.r.PathValue("id")))
		if tab != "" {
			to += "?tab=" + tab
		}
		return to
	}
}

// accountLabel returns the label that the visitor types to confirm.
func accountLabel(v *visit) (string, error) {
	u, err := v.account()
	return u.label(), err
}

// withReason returns the fields of a form that has only a reason.
func withReason(required bool) func(*visit) ([]field, error) {
	return func(v *visit) ([]field, error) { return []field{reasonField(v, required)}, nil }
}

// accessActions are the actions on one account.
func accessActions() []action {
	return []action{
		{
			at: "/users/{id}/edit", operation: "PATCH /users/{id}", title: "Change name and notes", submit: "Save", done: "Saved.", back: toUser(""),
			fields: func(v *visit) ([]field, error) {
				u, err := v.account()
				return []field{
					{Name: "full_name", Label: v.t("Name"), Type: "text", Value: u.str("full_name")},
					{Name: "notes", Label: v.t("Notes"), Type: "textarea", Value: u.str("notes"), Hint: v.t("For operators; the user never sees them.")},
					revisionField(u),
				}, err
			},
			do: func(v *visit) (any, error) {
				return v.d.adm.UpdateUser(v.ctx, v.actor, admin.UpdateUserParams{UserID: v.id(), Revision: v.revision(), FullName: ptr(v.form.Get("full_name")), Notes: ptr(v.form.Get("notes"))})
			},
		},
		{
			at: "/users/{id}/address", operation: "PATCH /users/{id}", title: "Change address and number", submit: "Save", done: "Saved. A notice goes to the old and the new address.", back: toUser(""),
			text: "Whoever has a verified address or number can sign in with it.", fields: addressFields, do: updateAddress,
		},
		{
			at: "/users/{id}/metadata", operation: "PATCH /users/{id}", title: "Change metadata", submit: "Save", done: "Saved.", back: toUser("metadata"), noDialog: true,
			fields: func(v *visit) ([]field, error) {
				u, err := v.account()
				return []field{
					{Name: "app_metadata", Label: "app_metadata", Type: "textarea", Value: pretty(u.get("app_metadata")), Hint: v.t("Set by the application. The user can read it but not change it.")},
					{Name: "user_metadata", Label: "user_metadata", Type: "textarea", Value: pretty(u.get("user_metadata")), Hint: v.t("Set by the user. Never trust it.")},
					revisionField(u),
				}, err
			},
			do: updateMetadata,
		},
		{
			at: "/users/{id}/ban", operation: "POST /users/{id}/ban", title: "Ban", text: "All sessions end, and the user cannot sign in until the ban ends.", submit: "Ban", danger: true, done: "Banned.", back: toUser(""), confirmation: accountLabel,
			fields: func(v *visit) ([]field, error) {
				return []field{reasonField(v, true), {Name: "until", Label: v.t("Until"), Type: "datetime-local", Hint: v.t("In UTC. Empty: for good")}}, nil
			},
			do: func(v *visit) (any, error) {
				until, err := v.formTime("until")
				if err != nil {
					return nil, err
				}
				return v.d.adm.BanUser(v.ctx, v.actor, admin.BanUserParams{UserID: v.id(), Until: until, Reason: v.formValue("reason")})
			},
		},
		{at: "/users/{id}/unban", operation: "POST /users/{id}/unban", title: "Lift the ban", submit: "Lift the ban", done: "The ban was lifted.", back: toUser(""), fields: withReason(false),
			do: func(v *visit) (any, error) {
				return v.d.adm.UnbanUser(v.ctx, v.actor, admin.UnbanUserParams{UserID: v.id(), Reason: v.formValue("reason")})
			}},
		{at: "/users/{id}/unlock", operation: "POST /users/{id}/unlock", title: "Unlock", text: "Lets ten more attempts through at passwords, codes and second factors. The user gets a notice by email.", submit: "Unlock", done: "Unlocked.", back: toUser(""), fields: withReason(false),
			do: func(v *visit) (any, error) {
				return v.d.adm.Unlock(v.ctx, v.actor, admin.UnlockParams{UserID: v.id(), Reason: v.formValue("reason")})
			}},
		{at: "/users/{id}/delete", operation: "POST /users/{id}/delete", title: "Delete the account", text: "Deletes the account and its data permanently. The audit log keeps its entries.", submit: "Delete", danger: true, done: "Deleted.",
			back: func(v *visit) string { return v.path("/users") }, confirmation: accountLabel, fields: withReason(true),
			do: func(v *visit) (any, error) {
				return nil, v.d.adm.DeleteUser(v.ctx, v.actor, admin.DeleteUserParams{UserID: v.id(), Reason: v.formValue("reason")})
			}},
		{at: "/users/{id}/anonymize", operation: "POST /users/{id}/anonymize", title: "Anonymise the account", text: "Removes everything that identifies the person, permanently. The ID stays.", submit: "Anonymise", danger: true, done: "Anonymised.",
			back: func(v *visit) string { return v.path("/users") }, confirmation: accountLabel, fields: withReason(true),
			do: func(v *visit) (any, error) {
				return v.d.adm.AnonymizeUser(v.ctx, v.actor, admin.AnonymizeUserParams{UserID: v.id(), Reason: v.formValue("reason")})
			}},
		{
			at: "/users/{id}/password", operation: "POST /users/{id}/password", title: "Set the password", text: "All sessions end, and the user gets a notice by email. It is better to send a link with which they choose a password.", submit: "Set the password", danger: true, done: "The password was set.", back: toUser("access"),
			fields: func(v *visit) ([]field, error) {
				return []field{
					{Name: "password", Label: v.t("New password"), Type: "password", Hint: v.t("Empty, with the box below ticked: removes it")},
					{Name: "remove", Label: v.t("Remove the password"), Type: "check"}, reasonField(v, false),
				}, nil
			},
			do: func(v *visit) (any, error) {
				p := admin.SetPasswordParams{UserID: v.id(), Password: ptr(v.form.Get("password")), Reason: v.formValue("reason")}
				if v.isChecked("remove") {
					p.Password = nil
				}
				return v.d.adm.SetPassword(v.ctx, v.actor, p)
			},
		},
		{at: "/users/{id}/factors/{factor}/remove", operation: "DELETE /users/{id}/factors/{factor}", title: "Remove the second factor or passkey", text: "It no longer signs in, and sign-ins no longer ask for it. The user gets a notice by email.", submit: "Remove", danger: true, done: "Removed.", back: toUser("access"), fields: withReason(false),
			do: func(v *visit) (any, error) {
				return v.d.adm.RemoveFactor(v.ctx, v.actor, admin.RemoveFactorParams{UserID: v.id(), FactorID: v.r.PathValue("factor"), Reason: v.formValue("reason"), Revision: v.revision()})
			}},
		{
			at: "/users/{id}/identities/{identity}/unlink", operation: "DELETE /users/{id}/identities/{identity}", title: "Unlink the identity", submit: "Unlink", danger: true, done: "Unlinked.", back: toUser("access"),
			fields: func(v *visit) ([]field, error) {
				return []field{{Name: "force", Label: v.t("Even if nobody could sign in any more"), Type: "check"}, reasonField(v, false)}, nil
			},
			do: func(v *visit) (any, error) {
				return v.d.adm.Unlink(v.ctx, v.actor, admin.UnlinkParams{UserID: v.id(), IdentityID: v.r.PathValue("identity"), Force: v.isChecked("force"), Reason: v.formValue("reason"), Revision: v.revision()})
			},
		},
		{
			at: "/users/{id}/link", operation: "POST /links", title: "Create a link", text: "Anyone who opens it can use it. It is shown only once, and nobody gets a notice.", submit: "Create the link", danger: true, back: toUser(""),
			fields: func(v *visit) ([]field, error) {
				return []field{{Name: "type", Label: v.t("For"), Type: "select", Options: v.choices("reset", "Choosing a new password", "magic_link", "Signing in", "verify", "Verifying the address", "invite", "Choosing the first password", "accept", "Accepting permissions")}}, nil
			},
			do: func(v *visit) (any, error) {
				return v.d.adm.MakeLink(v.ctx, v.actor, admin.MakeLinkParams{Type: admin.LinkType(v.formValue("type")), UserID: v.id()})
			},
			show: func(v *visit, o object) (*page, error) { return v.secret("The link", o.str("url"), toUser("")(v)), nil },
		},
		{
			at: "/users/{id}/send", operation: "POST /users/{id}/send", title: "Send a message", text: "It goes to the user's own address or number, as if they had requested it.", submit: "Send", done: "It was sent.", back: toUser(""),
			fields: func(v *visit) ([]field, error) {
				f := field{Name: "type", Label: v.t("What"), Type: "select", Options: v.choices("reset", "Password reset", "magic_link", "Sign-in link", "verify", "Address verification", "code", "Sign-in code by text message", "invite", "An invitation to choose a password", "accept", "Link to accept permissions")}
				f.entered(v.r.URL.Query())
				return []field{f}, nil
			},
			do: func(v *visit) (any, error) {
				_, err := v.d.adm.Send(v.ctx, v.actor, admin.SendParams{UserID: v.id(), Type: admin.LinkType(v.formValue("type"))})
				return nil, err
			},
		},
		{
			at: "/users/{id}/impersonate", operation: "POST /users/{id}/impersonate", noCurl: true, title: "Act as this user", text: "For 15 minutes, in the application. It is recorded, and the user sees it in their list of sessions.", submit: "Start", danger: true, back: toUser(""),
			fields: actFields, do: postAct,
			show: func(v *visit, o object) (*page, error) {
				return &page{Title: v.t("Act as this user"), Blocks: []block{{Text: v.t("The link is valid for one minute."), Link: &link{Text: v.t("Act as this user"), To: o.str("url")}}}}, nil
			},
		},
		{
			at: "/users/{id}/roles", boxes: []string{"roles"}, operation: "PUT /users/{id}/roles", title: "Change the roles", submit: "Save", done: "The roles were changed. This takes effect in every session within a second.", back: toUser("roles"),
			fields: roleFields, preview: warnUnverified,
			show: func(v *visit, o object) (*page, error) {
				if !v.addsRoles {
					return nil, nil
				}
				v.setNotice(v.t("The roles were changed. This takes effect in every session within a second; a role that needs a second factor waits until the person uses one."))
				v.redirect(toUser("roles")(v))
				return nil, nil
			},
			do: func(v *visit) (any, error) {
				var held []string
				if v.may("GET /users/{id}") {
					u, err := v.account()
					if err != nil {
						return nil, err
					}
					held = u.texts("roles")
				}
				v.addsRoles = slices.ContainsFunc(v.formValues("roles"), func(name string) bool { return !slices.Contains(held, name) })
				return v.d.adm.SetRoles(v.ctx, v.actor, admin.SetRolesParams{UserID: v.id(), Roles: v.formValues("roles"), Reason: v.formValue("reason"), Revision: v.revision(), Address: v.form.Get("address")})
			},
		},
		{at: "/users/{id}/sign-out", operation: "DELETE /users/{id}/sessions", title: "Sign out everywhere", submit: "Sign out", danger: true, done: "All sessions have ended.", back: toUser("sessions"), fields: withReason(false),
			preview: func(v *visit, p *page) error {
				if !v.may("GET /users/{id}/sessions") {
					return nil
				}
				o, err := v.sessionsOf(v.id())
				return v.addEndingSessions(p, o, err)
			},
			do: func(v *visit) (any, error) {
				_, err := v.d.adm.EndSessions(v.ctx, v.actor, v.id(), v.formValue("reason"))
				return nil, err
			}},
	}
}

// revisionField returns a hidden field with the account's present revision.
func revisionField(u object) field {
	return field{Name: "revision", Type: "hidden", Value: u.str("revision")}
}

// secret returns a page with a text that is shown once.
func (v *visit) secret(title, text, back string) *page {
	return &page{Title: v.t(title), Blocks: []block{
		{Warn: true, Text: v.t("It is shown only once. Copy it now.")}, {Code: text, Link: &link{Text: v.t("Done"), To: back}},
	}}
}

func addressFields(v *visit) ([]field, error) {
	u, err := v.account()
	return []field{
		{Name: "email", Label: v.t("Email address"), Type: "email", Value: u.str("email")},
		{Name: "email_verified", Label: v.t("The address is verified"), Type: "check", Checked: u.flag("email_verified")},
		{Name: "phone", Label: v.t("Phone number"), Type: "tel", Value: u.str("phone"), Hint: v.t("With the country code, such as +4915112345678")},
		{Name: "phone_verified", Label: v.t("The number is verified"), Type: "check", Checked: u.flag("phone_verified")},
		revisionField(u),
	}, err
}

// updateAddress updates the email address and the phone number that were edited.
func updateAddress(v *visit) (any, error) {
	u, err := v.account()
	if err != nil {
		return nil, err
	}
	p := admin.UpdateUserParams{UserID: v.id(), Revision: v.revision()}
	for _, f := range []struct {
		name     string
		value    **string
		verified **bool
	}{{"email", &p.Email, &p.EmailVerified}, {"phone", &p.Phone, &p.PhoneVerified}} {
		given, verified := v.form.Get(f.name), v.form.Get(f.name+"_verified") != ""
		if given != u.str(f.name) {
			*f.value = &given
		}
		if given != "" && (given != u.str(f.name) || verified != u.flag(f.name+"_verified")) {
			*f.verified = &verified
		}
	}
	return v.d.adm.UpdateUser(v.ctx, v.actor, p)
}

// updateMetadata replaces the present metadata by the entered metadata.
func updateMetadata(v *visit) (any, error) {
	u, err := v.account()
	if err != nil {
		return nil, err
	}
	p := admin.UpdateUserParams{UserID: v.id(), Revision: v.revision()}
	for name, patch := range map[string]*map[string]any{"app_metadata": &p.AppMetadata, "user_metadata": &p.UserMetadata} {
		to, err := readObject(v.form.Get(name))
		if err != nil {
			return nil, v.d.kit.Invalid(name, "has to be a JSON object")
		}
		if from := u.of(name).whole(); !reflect.DeepEqual(from, to) {
			*patch = mergePatch(from, to)
		}
	}
	return v.d.adm.UpdateUser(v.ctx, v.actor, p)
}

// roleFields returns boxes for all roles, with the account's roles ticked.
func roleFields(v *visit) ([]field, error) {
	u, err := v.account()
	if err != nil {
		return nil, err
	}
	f, err := v.roles(u.texts("roles"))
	address := field{Name: "address", Type: "hidden", Value: cmp.Or(u.str("email"), u.str("phone"))} // where the visitor expects the link to accept to go
	return []field{f, reasonField(v, false), revisionField(u), address}, err
}

// warnUnverified says above the form that roles would go to an account whose address nobody
// has verified.
func warnUnverified(v *visit, p *page) error {
	u, err := v.account()
	address, verified := u.str("email"), u.flag("email_verified")
	if address == "" {
		address, verified = u.str("phone"), u.flag("phone_verified")
	}
	if err == nil && address != "" && !verified {
		warning := block{Warn: true, Text: v.t("{address} is not verified: a person without this address may have created the account, and would get the roles.", "address", address), Link: ptr(v.to("Send a verification link", "POST /users/{id}/send", "/users/"+url.PathEscape(v.id())+"/send?type=verify", false))}
		if u.str("email") == "" {
			warning.Link = nil
		}
		p.Blocks = append([]block{warning}, p.Blocks...)
	}
	return err
}

// roles returns boxes for all roles, with the held ones ticked. It is a text field if
// there are too many roles or the visitor may not read them.
func (v *visit) roles(held []string) (field, error) {
	f := field{Name: "roles", Label: v.t("Roles"), Type: "checks"}
	var table store.RoleTable
	if v.may("GET /roles") {
		var err error
		if table, err = v.d.adm.Roles(v.ctx, v.actor); err != nil {
			return f, err
		}
	}
	if n := len(table.Roles); n == 0 || n > rolesAtOnce {
		f.Type, f.Value, f.Hint = "lines", strings.Join(held, "\n"), v.t("Separated by spaces")
		return f, nil
	}
	has := map[string]bool{}
	for _, name := range held {
		has[name] = true
	}
	left := maps.Clone(has)
	for _, r := range table.Roles {
		delete(left, r.Name)
		f.Options = append(f.Options, option{Value: r.Name, Text: r.Name, Description: r.Description, Chosen: has[r.Name]})
	}
	if !has[auth.RoleOwner] {
		f.Options = addOption(f.Options, auth.RoleOwner, v.t("May do everything"), false)
	}
	for name := range left {
		f.Options = addOption(f.Options, name, "", true)
	}
	return f, nil
}

func addOption(list []option, name, description string, chosen bool) []option {
	for _, o := range list {
		if o.Value == name {
			return list
		}
	}
	return append(list, option{Value: name, Text: name, Description: description, Chosen: chosen})
}
