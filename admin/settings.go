package admin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/wire"
	"github.com/authmount/auth/store"
)

var (
	opSettings     = operation{strict: true, pattern: "GET /settings", permission: PermSettingsRead}
	opSetSettings  = operation{pattern: "PATCH /settings", permission: PermSettingsWrite, stepUp: true, fails: []auth.Code{auth.CodePreconditionFailed, auth.CodeLastOwner}}
	opTestMail     = operation{pattern: "POST /settings/test-mail", permission: PermSettingsWrite, stepUp: true, fails: []auth.Code{auth.CodeRateLimited}}
	opTestSMS      = operation{pattern: "POST /settings/test-sms", permission: PermSettingsWrite, stepUp: true, fails: []auth.Code{auth.CodeRateLimited, auth.CodeMethodDisabled}}
	opTestProvider = operation{pattern: "POST /settings/test-provider/{name}", permission: PermSettingsWrite, stepUp: true, fails: []auth.Code{auth.CodeUnknownProvider}}
)

// Setting is one setting.
type Setting struct {
	Name   string
	Value  any    // as in JSON
	Source string // "option", "store" or "default"
	Locked bool   // operators cannot change it
	Why    string // the reason, if it is locked
}

// SettingsTable is every setting, at one revision of the stored settings.
type SettingsTable struct {
	Revision int64
	Settings []Setting
}

// Settings lists every setting with its value, its source, and whether operators can change
// it. It reads the store, which can be up to a second ahead of the settings in force. Errors
// are those of every operation.
func (m *Admin) Settings(ctx context.Context, who Actor) (SettingsTable, error) {
	if _, err := m.reader(ctx, who, opSettings); err != nil {
		return SettingsTable{}, err
	}
	stored, err := m.project.Settings(ctx)
	if err != nil {
		return SettingsTable{}, m.kit.StoreError(err)
	}
	return m.settingsTable(stored)
}

func (m *Admin) settingsTable(stored store.StoredSettings) (SettingsTable, error) {
	list, err := m.kit.Settings(stored)
	t := SettingsTable{Revision: stored.Revision}
	for _, s := range list {
		t.Settings = append(t.Settings, Setting(s))
	}
	return t, err
}

// SetSettingsParams are the parameters of [Admin.SetSettings].
type SetSettingsParams struct {
	// Set has the new values as in JSON (booleans, numbers, strings, lists of strings;
	// times are seconds), by the names that Settings lists. Nil removes the stored value,
	// so that the option or the default applies again.
	Set map[string]any

	Revision *int64 // the expected revision; nil: any
}

// SetSettings changes settings, all of them or none. They are in force in every instance
// within a second. Errors: CodeValidationFailed, which names every setting that is unknown,
// locked or invalid; CodeMissingPermission for a further redirect URL or origin without "*",
// because sign-ins of owners go there, too; CodeLastOwner for a change that leaves no owner
// able to sign in; CodePreconditionFailed for another revision.
func (m *Admin) SetSettings(ctx context.Context, who Actor, p SetSettingsParams) (SettingsTable, error) {
	changes := map[string]json.RawMessage{}
	for name, v := range p.Set {
		raw, err := json.Marshal(v)
		if err != nil {
			return SettingsTable{}, m.kit.Invalid(name, "cannot be written as JSON")
		}
		changes[name] = raw
	}
	stored, err := carryOut(ctx, m, who, opSetSettings, "", auth.EventSettingsChanged, func(t *attempt) (store.StoredSettings, error) {
		now, err := m.project.Settings(ctx)
		switch {
		case err != nil:
			return now, err
		case p.Revision != nil && *p.Revision != now.Revision:
			return now, m.fail(auth.CodePreconditionFailed, nil)
		case len(changes) == 0:
			return now, m.kit.Invalid("body", "names no setting")
		}
		edit, err := m.kit.EditSettings(now, changes)
		if err != nil {
			return now, err
		}
		for _, name := range []string{"redirect_urls", "cors_origins"} {
			if c, ok := edit.Changes[name]; ok && !onlyShorter(c) && !t.may(permAll) {
				return now, m.missing(t.acting, permAll)
			}
		}
		if err := m.leavesAnOwner(ctx, t, edit); err != nil {
			return now, err
		}
		t.record.Target = "settings"
		for name, c := range edit.Changes {
			t.changed(name, c.Before, c.After)
		}
		var stored, next map[string]any
		if json.Unmarshal(now.Document, &stored) == nil && json.Unmarshal(edit.Document, &next) == nil && t.unchanged(wire.SameJSON(stored, next)) {
			return now, nil
		}
		return m.project.PutSettings(ctx, store.PutSettings{Change: t.change, Revision: now.Revision, Document: edit.Document})
	})
	if err != nil {
		return SettingsTable{}, err
	}
	m.kit.ReloadSettings(ctx)
	return m.settingsTable(stored)
}

// onlyShorter reports whether a list only lost entries.
func onlyShorter(c store.FieldChange) bool {
	before, _ := c.Before.([]string)
	after, _ := c.After.([]string)
	return !slices.ContainsFunc(after, func(entry string) bool { return !slices.Contains(before, entry) })
}

// leavesAnOwner checks that at least one owner can still sign in and use the admin API after
// the edit, because only such an owner can undo every change. It makes that owner's
// credentials a condition of the change. If no owner could sign in before, every edit is
// allowed. Errors: CodeLastOwner.
func (m *Admin) leavesAnOwner(ctx context.Context, t *attempt, edit host.SettingsEdit) error {
	banned, hadOwner := false, false
	q := store.UserQuery{Role: auth.RoleOwner, Banned: &banned, Now: m.kit.Now(), Limit: maxPage}
	for {
		list, err := m.admin.ListUsers(ctx, q)
		if err != nil {
			return err
		}
		for _, u := range list {
			c, err := m.store.Credentials(ctx, store.ByID(u.ID))
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			before, after, err := m.kit.CanSignIn(ctx, edit, c, m.requireMFA)
			if err != nil {
				return err
			}
			if after {
				t.change.KeepOwner = true
				t.change.IfUsers = append(t.change.IfUsers, auth.UserAt{ID: u.ID, CredentialRevision: &c.User.CredentialRevision})
				return nil
			}
			hadOwner = hadOwner || before
		}
		if len(list) < q.Limit {
			break
		}
		q.After = q.Cursor(list[len(list)-1])
	}
	if hadOwner {
		return auth.Reject(auth.CodeLastOwner, "No owner could sign in any more. Keep a sign-in method that at least one owner has.")
	}
	return nil
}

// TryResult is the result of a test.
type TryResult struct {
	OK     bool
	Queued bool   // no result yet: like every message, it is retried for some time
	Detail string // the result, or the reason of the failure; without secrets
}

// TryMail sends a mail to the actor's own verified email address, and waits up to ten seconds
// for the first attempt. It counts against the rate limits of messages. Errors:
// CodeValidationFailed for an actor without a verified email address, CodeRateLimited.
func (m *Admin) TryMail(ctx context.Context, who Actor) (TryResult, error) {
	return m.testMessage(ctx, who, opTestMail, auth.ChannelEmail)
}

// TrySMS is TryMail for a text message to the actor's own verified phone number. Further
// errors: CodeMethodDisabled without an SMSSender.
func (m *Admin) TrySMS(ctx context.Context, who Actor) (TryResult, error) {
	return m.testMessage(ctx, who, opTestSMS, auth.ChannelSMS)
}

func (m *Admin) testMessage(ctx context.Context, who Actor, op operation, by auth.Channel) (TryResult, error) {
	var test host.TestMessage // created once, however often the change is retried
	before, err := carryOut(ctx, m, who, op, "", auth.EventSettingsTested, func(t *attempt) (TryResult, error) {
		t.record.Target = string(by)
		if t.user == nil {
			return TryResult{}, m.kit.Invalid("actor", "is not an account with an address")
		}
		if test == nil {
			permit, err := m.kit.PermitTest(ctx, *t.user, by)
			if err != nil {
				return TryResult{}, err
			}
			test = permit
		}
		test.Add(ctx, &t.change)
		if err := t.keep(TryResult{Queued: true, Detail: "this test was already requested"}); err != nil {
			return TryResult{}, err
		}
		_, err := m.project.PutSettings(ctx, store.PutSettings{Change: t.change})
		return TryResult{}, err
	})
	if test != nil {
		defer test.Forget()
	}
	if err != nil || before.Queued {
		return before, err
	}
	switch done, err := test.Wait(ctx); {
	case err != nil:
		return TryResult{Detail: m.kit.Shorten(err.Error())}, nil
	case !done:
		return TryResult{Queued: true, Detail: "the first attempt is still running"}, nil
	}
	return TryResult{OK: true, Detail: "the message was handed over"}, nil
}

// TryProvider fetches a provider's discovery document and keys, bypassing the cache. Errors:
// CodeUnknownProvider.
func (m *Admin) TryProvider(ctx context.Context, who Actor, name string) (TryResult, error) {
	_, err := carryOut(ctx, m, who, opTestProvider, "", auth.EventSettingsTested, func(t *attempt) (store.StoredSettings, error) {
		if !m.kit.HasProvider(name) {
			return store.StoredSettings{}, m.fail(auth.CodeUnknownProvider, nil)
		}
		t.record.Target = name
		return m.project.PutSettings(ctx, store.PutSettings{Change: t.change})
	})
	if err != nil {
		return TryResult{}, err
	}
	detail, err := m.kit.TestProvider(ctx, name)
	if err != nil {
		return TryResult{Detail: m.kit.Shorten(err.Error())}, nil //nolint:nilerr // the failure is the result of the test
	}
	return TryResult{OK: true, Detail: detail}, nil
}

var settingsEndpoints = []endpoint{
	op(opSettings, bare((*Admin).Settings)),
	op(opSetSettings, (*Admin).setSettings),
	op(opTestMail, bare((*Admin).TryMail)),
	op(opTestSMS, bare((*Admin).TrySMS)),
	op(opTestProvider, func(m *Admin, ctx context.Context, who Actor, p providerParams) (TryResult, error) {
		return m.TryProvider(ctx, who, p.Name)
	}),
	op(opDiagnostics, bare((*Admin).Diagnostics)),
}

// providerParams name a provider.
type providerParams struct {
	Name string `path:"name"`
}

type settingView struct {
	Value  any    `json:"value"`
	Source string `json:"source"`
	Locked bool   `json:"locked"`
	Why    string `json:"locked_because,omitempty"`
}

func (t SettingsTable) reply(*Admin) reply {
	out := struct {
		Revision int64                  `json:"revision"`
		Settings map[string]settingView `json:"settings"`
	}{t.Revision, map[string]settingView{}}
	for _, s := range t.Settings {
		out.Settings[s.Name] = settingView{s.Value, s.Source, s.Locked, s.Why}
	}
	return reply{revision: &t.Revision, body: out}
}

func (t TryResult) reply(*Admin) reply {
	return reply{body: struct {
		OK     bool   `json:"ok"`
		Queued bool   `json:"queued"`
		Detail string `json:"detail"`
	}(t)}
}

// setSettingsBody is SetSettingsParams on the wire, where the body is the settings.
type setSettingsBody struct {
	Set      map[string]json.RawMessage `json:"*"`
	Revision *int64                     `header:"If-Match"`
}

func (m *Admin) setSettings(ctx context.Context, who Actor, p setSettingsBody) (SettingsTable, error) {
	set := map[string]any{}
	for name, raw := range p.Set {
		set[name] = raw
	}
	return m.SetSettings(ctx, who, SetSettingsParams{Set: set, Revision: p.Revision})
}
