package dashboard

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
)

func showKeys(v *visit) (*page, error) {
	o, err := find(v, v.query(), v.d.adm.ListKeys)
	if err != nil {
		return nil, err
	}
	p := &page{Title: v.t("Keys"), Under: v.t("Secret keys are for programs; public ones name an application."), Buttons: []link{v.to("New key", "POST /keys", "/keys/new", false)}}
	t := &table{Name: v.t("Keys"), Columns: v.columns("Name", "Kind", "Status", "Scopes", "Last used", "Ends"), Empty: v.t("There are no keys yet, except those of the options."), Next: v.next(o)}
	for _, k := range o.list("keys") {
		t.Rows = append(t.Rows, row{Off: k.str("status") != "live", Cells: []cell{{Text: k.str("name"), To: v.path("/keys/" + url.PathEscape(k.str("id")))}, {Text: v.t(k.str("kind"))}, {Tags: []tag{v.keyStatus(k)}},
			{Tags: words(k.texts("scopes"))}, v.when(k, "last_used_at"), v.when(k, "expires_at")}})
	}
	p.Blocks = []block{{Table: t}}
	return p, nil
}

func (v *visit) keyStatus(k object) tag {
	return tag{v.t(k.str("status")), map[string]string{"live": "good", "revoked": "bad", "expired": "warn"}[k.str("status")]}
}

// key finds the page's key in the list, because no operation returns one key.
func (v *visit) key() (object, error) {
	q := url.Values{"limit": {"200"}}
	for {
		o, err := find(v, q, v.d.adm.ListKeys)
		if err != nil {
			return nil, err
		}
		for _, k := range o.list("keys") {
			if k.str("id") == v.r.PathValue("id") {
				return k, nil
			}
		}
		if o.str("next_cursor") == "" {
			return nil, auth.Reject(auth.CodeNotFound, "")
		}
		q.Set("cursor", o.str("next_cursor"))
	}
}

func showKey(v *visit) (*page, error) {
	k, err := v.key()
	if err != nil {
		return nil, err
	}
	at := "/keys/" + url.PathEscape(k.str("id"))
	p := &page{Title: k.str("name"), Tags: []tag{v.keyStatus(k), {Text: v.t(k.str("kind"))}}}
	if k.str("status") == "live" {
		p.Buttons = []link{v.to("Change", "PATCH /keys/{id}", at+"/edit", false), v.to("Rotate", "POST /keys/{id}/rotate", at+"/rotate", false), v.to("Revoke", "DELETE /keys/{id}", at+"/revoke", true)}
	}
	facts := []fact{
		{Name: v.t("Id"), Cells: []cell{{Text: k.str("id"), Code: true}}}, {Name: v.t("Environment"), Cells: []cell{{Text: k.str("environment")}}},
		{Name: v.t("Scopes"), Cells: []cell{{Tags: words(k.texts("scopes"))}}}, {Name: v.t("Networks"), Cells: []cell{{Text: cmp.Or(strings.Join(k.texts("cidrs"), ", "), v.t("Any"))}}},
		{Name: v.t("Created"), Cells: []cell{{Time: k.time("created_at")}}}, {Name: v.t("Created by"), Cells: []cell{v.userCell(k.str("created_by"), "")}},
		{Name: v.t("Last used"), Cells: []cell{v.when(k, "last_used_at")}}, {Name: v.t("Rotated"), Cells: []cell{v.when(k, "rotated_at")}}, {Name: v.t("Ends"), Cells: []cell{v.when(k, "expires_at")}},
	}
	if t := k.time("previous_until"); t.After(v.d.kit.Now()) {
		facts = append(facts, fact{Name: v.t("The previous key works until"), Cells: []cell{{Time: t}}})
	}
	p.Blocks = []block{{Facts: facts}}
	return p, nil
}

func keyActions() []action {
	toKey := func(v *visit) string { return v.path("/keys/" + url.PathEscape(v.r.PathValue("id"))) }
	toKeys := func(v *visit) string { return v.path("/keys") }
	shown := func(v *visit, o object) (*page, error) { return v.secret("The key", o.str("key"), toKeys(v)), nil }
	return []action{
		{
			at: "/keys/new", boxes: []string{"scopes"}, operation: "POST /keys", title: "New key", submit: "Create", back: toKeys, show: shown,
			fields: func(v *visit) ([]field, error) {
				scopes, err := v.scopes(nil)
				return slices.Concat([]field{
					{Name: "name", Label: v.t("Name"), Type: "text", Required: true},
					{Name: "kind", Label: v.t("Kind"), Type: "select", Options: v.choices("secret", "Secret, for programs", "public", "Public, names an application")},
				}, scopes, []field{
					v.hourlyLimit(""),
					{Name: "cidrs", Label: v.t("Networks"), Type: "lines", Hint: v.t("Networks from which it may be used, such as 192.0.2.0/24. Empty: from anywhere")},
					{Name: "expires_at", Label: v.t("Ends"), Type: "datetime-local", Hint: v.t("In UTC. Empty: never")},
				}), err
			},
			do: func(v *visit) (any, error) {
				ends, err := v.formTime("expires_at")
				if err != nil {
					return nil, err
				}
				limit, err := v.formNumber("hourly_limit")
				kind := v.formValue("kind")
				switch {
				case err != nil:
					return nil, err
				case kind != "" && kind != "secret" && kind != "public":
					return nil, v.d.kit.Invalid("kind", "has to be secret or public")
				}
				return v.d.adm.CreateKey(v.ctx, v.actor, admin.CreateKeyParams{Name: v.formValue("name"), Public: kind == "public", Scopes: v.postedScopes(), Networks: v.formValues("cidrs"), ExpiresAt: ends, HourlyLimit: limit})
			},
		},
		{
			at: "/keys/{id}/edit", boxes: []string{"scopes"}, operation: "PATCH /keys/{id}", title: "Change the key", submit: "Save", done: "Saved.", back: toKey,
			fields: func(v *visit) ([]field, error) {
				k, err := v.key()
				if err != nil {
					return nil, err
				}
				scopes, err := v.scopes(k.texts("scopes"))
				return slices.Concat([]field{{Name: "name", Label: v.t("Name"), Type: "text", Required: true, Value: k.str("name")}}, scopes, []field{
					v.hourlyLimit(k.str("hourly_limit")),
					{Name: "cidrs", Label: v.t("Networks"), Type: "lines", Value: strings.Join(k.texts("cidrs"), " ")},
					{Name: "expires_at", Label: v.t("Ends"), Type: "datetime-local", Value: day(k.time("expires_at")), Hint: v.t("In UTC. Empty: never")},
					{Name: "revision", Type: "hidden", Value: k.str("revision")},
				}), err
			},
			do: updateKey,
		},
		{
			at: "/keys/{id}/rotate", operation: "POST /keys/{id}/rotate", title: "Rotate the key", text: "A new key is created. The previous one keeps working for a while, so that you can update your programs.", submit: "Rotate", danger: true, back: toKey, show: shown,
			fields: func(v *visit) ([]field, error) {
				return []field{{Name: "overlap", Label: v.t("The previous key keeps working for"), Type: "select", Options: v.choices("86400", "A day", "604800", "A week", "3600", "An hour", "0", "Not at all")}}, nil
			},
			do: func(v *visit) (any, error) {
				n, err := strconv.Atoi(v.form.Get("overlap"))
				if err != nil || n < 0 || n > 366*86400 {
					return nil, v.d.kit.Invalid("overlap", "has to be a number of seconds")
				}
				return v.d.adm.RotateKey(v.ctx, v.actor, admin.RotateKeyParams{ID: v.id(), Overlap: time.Duration(n) * time.Second})
			},
		},
		{at: "/keys/{id}/revoke", operation: "DELETE /keys/{id}", title: "Revoke the key", text: "It stops working immediately and permanently.", submit: "Revoke", danger: true, done: "The key was revoked.", back: toKey, fields: withReason(false),
			do: func(v *visit) (any, error) {
				return nil, v.d.adm.RevokeKey(v.ctx, v.actor, admin.RevokeKeyParams{ID: v.id(), Reason: v.formValue("reason"), Revision: v.revision()})
			},
			confirmation: func(v *visit) (string, error) {
				k, err := v.key()
				return k.str("name"), err
			}},
	}
}

// scopes returns a key's scopes as boxes for all permissions and roles, and a field for
// patterns.
// Visitors who may not read permissions get one field for both.
func (v *visit) scopes(held []string) ([]field, error) {
	if !v.may("GET /permissions") {
		return []field{{Name: "scopes", Label: v.t("Scopes"), Type: "lines", Value: strings.Join(held, " "), Hint: v.t("Permissions, or patterns such as auth.users.*, separated by spaces")}}, nil
	}
	f, err := v.permissions(held)
	f.Name, f.Label = "scopes", v.t("Scopes")
	f.Options = slices.DeleteFunc(f.Options, func(o option) bool { return !admin.AllowedForKeys(o.Value) })
	for _, name := range v.me.RoleScopes() {
		f.Options = addOption(f.Options, name, v.t("Give and take this role, with its permissions and auth.roles.assign"), slices.Contains(held, name))
	}
	rest := v.others(held)
	for _, name := range held { // a scope that is not declared any more remains until it is removed
		if !strings.Contains(name, "*") {
			f.Options = addOption(f.Options, name, "", true)
		}
	}
	return []field{f, rest}, err
}

// postedScopes returns the posted scopes of all fields.
func (v *visit) postedScopes() []string {
	return slices.Concat(v.formValues("scopes"), v.formValues("patterns"))
}

// hourlyLimit returns the field of a key's budget.
func (v *visit) hourlyLimit(n string) field {
	return field{Name: "hourly_limit", Label: v.t("Accounts an hour"), Type: "number", Value: hourly(n), Hint: v.t("How many accounts it may ban, delete, anonymise, sign out or mail in an hour. Empty: 50")}
}

// hourly returns a key's budget as its field has it.
func hourly(n string) string {
	if n == "0" {
		return ""
	}
	return n
}

// updateKey updates the fields of a key that were edited.
func updateKey(v *visit) (any, error) {
	k, err := v.key()
	if err != nil {
		return nil, err
	}
	p := admin.UpdateKeyParams{ID: v.id(), Revision: v.revision()}
	if name := v.formValue("name"); name != k.str("name") {
		p.Name = &name
	}
	other := func(given []string, is string) bool {
		return !slices.Equal(slices.Sorted(slices.Values(given)), slices.Sorted(slices.Values(k.texts(is))))
	}
	if scopes := v.postedScopes(); other(scopes, "scopes") {
		p.Scopes = &scopes
	}
	if networks := v.formValues("cidrs"); other(networks, "cidrs") {
		p.Networks = &networks
	}
	if v.formValue("hourly_limit") != hourly(k.str("hourly_limit")) {
		limit, err := v.formNumber("hourly_limit")
		if err != nil {
			return nil, err
		}
		p.HourlyLimit = &limit
	}
	if v.form.Get("expires_at") != day(k.time("expires_at")) {
		ends, err := v.formTime("expires_at")
		if err != nil {
			return nil, err
		}
		p.ExpiresAt = &ends
	}
	_, err = v.d.adm.UpdateKey(v.ctx, v.actor, p)
	return nil, err
}
