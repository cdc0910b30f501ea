package dashboard

import (
	"maps"
	"net/url"
	"reflect"
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

// because returns a form with a reason.
func because(required bool) func(*visit) ([]field, error) {
	return func(v *visit) ([]field, error) { return []field{reason(v, required)}, nil }
}

// accessActions are the actions on one account.
func accessActions() []action {
	return []action{
		{
			at: "/users/{id}/edit", asks: "PATCH /users/{id}", title: "Change name and notes", submit: "Save", done: "Saved.", back: toUser(""),
			fields: func(v *visit) ([]field, error) {
				u, err := v.account()
				return []field{
					{Name: "full_name", Label: v.t("Name"), Type: "text", Value: u.str("full_name")},
					{Name: "notes", Label: v.t("Notes"), Type: "textarea", Value: u.str("notes"), Hint: v.t("For operators; the user never sees them.")},
					seen(u),
				}, err
			},
			do: func(v *visit) (any, error) {
				return v.d.adm.UpdateUser(v.ctx, v.who, admin.UpdateUserParams{UserID: v.id(), Revision: v.revision(), FullName: ptr(v.form.Get("full_name")), Notes: ptr(v.form.Get("notes"))})
			},
		},
		{
			at: "/users/{id}/address", asks: "PATCH /users/{id}", title: "Change address and number", submit: "Save", done: "Saved. Whoever has the former and the new address is told.", back: toUser(""),
			text: "An address or number that is marked as proved lets its owner in.", fields: addressFields, do: updateAddress,
		},
		{
			at: "/users/{id}/metadata", asks: "PATCH /users/{id}", title: "Change metadata", submit: "Save", done: "Saved.", back: toUser("metadata"), plain: true,
			fields: func(v *visit) ([]field, error) {
				u, err := v.account()
				return []field{
					{Name: "app_metadata", Label: "app_metadata", Type: "textarea", Value: pretty(u.get("app_metadata")), Hint: v.t("The application's; the user can read it and not change it.")},
					{Name: "user_metadata", Label: "user_metadata", Type: "textarea", Value: pretty(u.get("user_metadata")), Hint: v.t("The user's own; never to be trusted.")},
					seen(u),
				}, err
			},
			do: updateMetadata,
		},
		{
			at: "/users/{id}/ban", asks: "POST /users/{id}/ban", title: "Ban", text: "All sessions end, and no way in is open until the ban ends.", submit: "Ban", danger: true, done: "Banned.", back: toUser(""), typed: accountLabel,
			fields: func(v *visit) ([]field, error) {
				return []field{reason(v, true), {Name: "until", Label: v.t("Until"), Type: "datetime-local", Hint: v.t("In UTC. Empty: for good")}}, nil
			},
			do: func(v *visit) (any, error) {
				until, err := v.instant("until")
				if err != nil {
					return nil, err
				}
				return v.d.adm.BanUser(v.ctx, v.who, admin.BanUserParams{UserID: v.id(), Until: until, Reason: v.said("reason")})
			},
		},
		{at: "/users/{id}/unban", asks: "POST /users/{id}/unban", title: "Lift the ban", submit: "Lift the ban", done: "The ban is lifted.", back: toUser(""), fields: because(false),
			do: func(v *visit) (any, error) {
				return v.d.adm.UnbanUser(v.ctx, v.who, admin.UnbanUserParams{UserID: v.id(), Reason: v.said("reason")})
			}},
		{at: "/users/{id}/unlock", asks: "POST /users/{id}/unlock", title: "Unlock", text: "The limits on failed passwords, codes and second factors begin anew.", submit: "Unlock", done: "Unlocked.", back: toUser(""), fields: because(false),
			do: func(v *visit) (any, error) {
				return v.d.adm.Unlock(v.ctx, v.who, admin.UnlockParams{UserID: v.id(), Reason: v.said("reason")})
			}},
		{at: "/users/{id}/delete", asks: "POST /users/{id}/delete", title: "Delete the account", text: "Everything of it goes, for good. The audit log keeps what happened.", submit: "Delete", danger: true, done: "Deleted.",
			back: func(v *visit) string { return v.path("/users") }, typed: accountLabel, fields: because(true),
			do: func(v *visit) (any, error) {
				return nil, v.d.adm.DeleteUser(v.ctx, v.who, admin.DeleteUserParams{UserID: v.id(), Reason: v.said("reason")})
			}},
		{at: "/users/{id}/anonymize", asks: "POST /users/{id}/anonymize", title: "Anonymise the account", text: "Whatever tells who it was goes, for good; the id stays.", submit: "Anonymise", danger: true, done: "Anonymised.",
			back: func(v *visit) string { return v.path("/users") }, typed: accountLabel, fields: because(true),
			do: func(v *visit) (any, error) {
				return v.d.adm.AnonymizeUser(v.ctx, v.who, admin.AnonymizeUserParams{UserID: v.id(), Reason: v.said("reason")})
			}},
		{
			at: "/users/{id}/password", asks: "POST /users/{id}/password", title: "Set the password", text: "All sessions end, and the user is told by mail. Better send a link to choose one.", submit: "Set the password", danger: true, done: "The password is set.", back: toUser("access"),
			fields: func(v *visit) ([]field, error) {
				return []field{
					{Name: "password", Label: v.t("New password"), Type: "password", Hint: v.t("Empty, with the box below ticked: removes it")},
					{Name: "remove", Label: v.t("Remove the password"), Type: "check"}, reason(v, false),
				}, nil
			},
			do: func(v *visit) (any, error) {
				p := admin.SetPasswordParams{UserID: v.id(), Password: ptr(v.form.Get("password")), Reason: v.said("reason")}
				if v.ticked("remove") {
					p.Password = nil
				}
				return v.d.adm.SetPassword(v.ctx, v.who, p)
			},
		},
		{at: "/users/{id}/factors/{factor}/remove", asks: "DELETE /users/{id}/factors/{factor}", title: "Remove the second factor", text: "The password alone lets in afterwards. The user is told by mail.", submit: "Remove", danger: true, done: "Removed.", back: toUser("access"), fields: because(false),
			do: func(v *visit) (any, error) {
				return v.d.adm.RemoveFactor(v.ctx, v.who, admin.RemoveFactorParams{UserID: v.id(), FactorID: v.r.PathValue("factor"), Reason: v.said("reason"), Revision: v.revision()})
			}},
		{
			at: "/users/{id}/identities/{identity}/unlink", asks: "DELETE /users/{id}/identities/{identity}", title: "Unlink the identity", submit: "Unlink", danger: true, done: "Unlinked.", back: toUser("access"),
			fields: func(v *visit) ([]field, error) {
				return []field{{Name: "force", Label: v.t("Also if nobody could sign in any more"), Type: "check"}, reason(v, false)}, nil
			},
			do: func(v *visit) (any, error) {
				return v.d.adm.Unlink(v.ctx, v.who, admin.UnlinkParams{UserID: v.id(), IdentityID: v.r.PathValue("identity"), Force: v.ticked("force"), Reason: v.said("reason"), Revision: v.revision()})
			},
		},
		{
			at: "/users/{id}/link", asks: "POST /links", title: "Make a link", text: "Whoever opens it can do what it is for. It is shown once, and nobody is told.", submit: "Make the link", danger: true, back: toUser(""),
			fields: func(v *visit) ([]field, error) {
				return []field{{Name: "type", Label: v.t("For"), Type: "select", Options: v.choices("reset", "Choosing a new password", "magic_link", "Signing in", "verify", "Proving the address", "invite", "Choosing the first password")}}, nil
			},
			do: func(v *visit) (any, error) {
				return v.d.adm.MakeLink(v.ctx, v.who, admin.MakeLinkParams{Type: admin.LinkType(v.said("type")), UserID: v.id()})
			},
			show: func(v *visit, o object) (*page, error) { return v.secret("The link", o.str("url"), toUser("")(v)), nil },
		},
		{
			at: "/users/{id}/send", asks: "POST /users/{id}/send", title: "Send a message", text: "It goes to the user's own address or number, as if they had asked for it.", submit: "Send", done: "It is on its way.", back: toUser(""),
			fields: func(v *visit) ([]field, error) {
				return []field{{Name: "type", Label: v.t("What"), Type: "select", Options: v.choices("reset", "Password reset", "magic_link", "Sign-in link", "verify", "Proof of the address", "code", "Sign-in code by text message", "invite", "An invitation to choose a password")}}, nil
			},
			do: func(v *visit) (any, error) {
				_, err := v.d.adm.Send(v.ctx, v.who, admin.SendParams{UserID: v.id(), Type: admin.LinkType(v.said("type"))})
				return nil, err
			},
		},
		{
			at: "/users/{id}/impersonate", asks: "POST /users/{id}/impersonate", title: "Act as this user", text: "For 15 minutes, in the application. It is recorded, and the user sees it among their sessions.", submit: "Begin", danger: true, back: toUser(""),
			fields: func(v *visit) ([]field, error) {
				return []field{reason(v, true), {Name: "redirect_to", Label: v.t("Where in the application"), Type: "url", Required: true, List: v.redirects(), Hint: v.t("An address of the list of redirects, which trades the code for a session")}}, nil
			},
			do: func(v *visit) (any, error) {
				return v.d.adm.Impersonate(v.ctx, v.who, admin.ImpersonateParams{UserID: v.id(), Reason: v.said("reason"), RedirectTo: v.said("redirect_to")})
			},
			show: func(v *visit, o object) (*page, error) {
				if u, err := v.account(); err == nil {
					v.acts(u.label(), o.str("session_id"))
				}
				return &page{Title: v.t("Act as this user"), Blocks: []block{{Text: v.t("The link is good for a minute."), Link: &link{Text: v.t("Go on as this user"), To: o.str("url")}}}}, nil
			},
		},
		{
			at: "/users/{id}/roles", boxes: []string{"roles"}, asks: "PUT /users/{id}/roles", title: "Change the roles", submit: "Save", done: "The roles are changed, in every session within a second.", back: toUser("roles"),
			fields: roleFields,
			do: func(v *visit) (any, error) {
				return v.d.adm.SetRoles(v.ctx, v.who, admin.SetRolesParams{UserID: v.id(), Roles: v.several("roles"), Reason: v.said("reason"), Revision: v.revision()})
			},
		},
		{at: "/users/{id}/sign-out", asks: "DELETE /users/{id}/sessions", title: "Sign out everywhere", submit: "Sign out", danger: true, done: "All sessions have ended.", back: toUser("sessions"), fields: because(false),
			shows: func(v *visit, p *page) error {
				if !v.may("GET /users/{id}/sessions") {
					return nil
				}
				o, err := v.sessionsOf(v.id())
				return v.ending(p, o, err)
			},
			do: func(v *visit) (any, error) {
				_, err := v.d.adm.EndSessions(v.ctx, v.who, v.id(), v.said("reason"))
				return nil, err
			}},
	}
}

// impersonationSeconds is the lifetime of an impersonation.
const impersonationSeconds = 15 * 60

// seen returns a hidden field with the account's present revision.
func seen(u object) field {
	return field{Name: "revision", Type: "hidden", Value: u.str("revision")}
}

// secret returns a page with a text that is shown once.
func (v *visit) secret(title, text, back string) *page {
	return &page{Title: v.t(title), Blocks: []block{
		{Warn: true, Text: v.t("It is shown this once. Copy it now.")}, {Code: text, Link: &link{Text: v.t("Done"), To: back}},
	}}
}

func addressFields(v *visit) ([]field, error) {
	u, err := v.account()
	return []field{
		{Name: "email", Label: v.t("E-mail address"), Type: "email", Value: u.str("email")},
		{Name: "email_verified", Label: v.t("The address is proved"), Type: "check", Checked: u.flag("email_verified")},
		{Name: "phone", Label: v.t("Phone number"), Type: "tel", Value: u.str("phone"), Hint: v.t("With the country code, such as +4915112345678")},
		{Name: "phone_verified", Label: v.t("The number is proved"), Type: "check", Checked: u.flag("phone_verified")},
		seen(u),
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
	return v.d.adm.UpdateUser(v.ctx, v.who, p)
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
	return v.d.adm.UpdateUser(v.ctx, v.who, p)
}

// roleFields returns boxes for all roles, with the account's roles ticked.
func roleFields(v *visit) ([]field, error) {
	u, err := v.account()
	if err != nil {
		return nil, err
	}
	f, err := v.roles(u.texts("roles"))
	return []field{f, reason(v, false), seen(u)}, err
}

// roles returns boxes for all roles, with the held ones ticked. It is a text field if
// there are too many roles or the visitor may not read them.
func (v *visit) roles(held []string) (field, error) {
	f := field{Name: "roles", Label: v.t("Roles"), Type: "checks"}
	var table store.RoleTable
	if v.may("GET /roles") {
		var err error
		if table, err = v.d.adm.Roles(v.ctx, v.who); err != nil {
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
		f.Options = append(f.Options, option{Value: r.Name, Text: r.Name, Why: r.Description, Chosen: has[r.Name]})
	}
	if !has[auth.RoleOwner] {
		f.Options = addOption(f.Options, auth.RoleOwner, v.t("May do everything"), false)
	}
	for name := range left {
		f.Options = addOption(f.Options, name, "", true)
	}
	return f, nil
}

func addOption(list []option, name, why string, chosen bool) []option {
	for _, o := range list {
		if o.Value == name {
			return list
		}
	}
	return append(list, option{Value: name, Text: name, Why: why, Chosen: chosen})
}
