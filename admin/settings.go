package admin

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

var (
	opSettings     = operation{pattern: "GET /settings", permission: PermSettingsRead}
	opSetSettings  = operation{pattern: "PATCH /settings", permission: PermSettingsWrite, stepUp: true, fails: []auth.Code{auth.CodePreconditionFailed, auth.CodeLastOwner}}
	opTestMail     = operation{pattern: "POST /settings/test-mail", permission: PermSettingsWrite, stepUp: true, fails: []auth.Code{auth.CodeRateLimited}}
	opTestSMS      = operation{pattern: "POST /settings/test-sms", permission: PermSettingsWrite, stepUp: true, fails: []auth.Code{auth.CodeRateLimited, auth.CodeMethodDisabled}}
	opTestProvider = operation{pattern: "POST /settings/test-provider/{name}", permission: PermSettingsWrite, stepUp: true, fails: []auth.Code{auth.CodeUnknownProvider}}
)

// Setting is one setting, as it is in force.
type Setting struct {
	Name   string
	Value  any    // as in JSON
	Source string // "option", "store" or "default"
	Locked bool   // it cannot be changed here
	Why    string // it is locked
}

// SettingsTable is every setting, at one revision of what the store says of them.
type SettingsTable struct {
	Revision int64
	Settings []Setting
}

// Settings lists every setting: its value, where that is from, and whether it can be
// changed here. It is read from the store, which may be ahead of what is in force by
// a second. Errors are those of every operation.
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

// SetSettingsParams change settings.
type SetSettingsParams struct {
	// Set has values as in JSON (booleans, numbers, texts, lists of texts; times are
	// seconds), by the names that Settings lists. Nil takes back what the store says,
	// so that the option or the default counts again.
	Set map[string]any

	Revision *int64 // of the settings as they were seen; nil: whatever it is
}

// SetSettings changes settings, all of them or none, which are in force in every
// instance within a second. Errors: CodeValidationFailed, which names whatever is
// unknown, locked or not right; CodeLastOwner for what would leave no owner a way to
// sign in; CodePreconditionFailed.
func (m *Admin) SetSettings(ctx context.Context, who Actor, p SetSettingsParams) (SettingsTable, error) {
	changes := map[string]json.RawMessage{}
	for name, v := range p.Set {
		raw, err := json.Marshal(v)
		if err != nil {
			return SettingsTable{}, m.kit.Invalid(name, "cannot be written as JSON")
		}
		changes[name] = raw
	}
	stored, err := carryOut(ctx, m, who, opSetSettings, "", auth.EventSettingsChanged, func(t *turn) (store.StoredSettings, error) {
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
		if err := m.leavesAnOwner(ctx, t, edit); err != nil {
			return now, err
		}
		t.record.Target = "settings"
		for name, c := range edit.Changes {
			t.changed(name, c.Before, c.After)
		}
		return m.project.PutSettings(ctx, store.PutSettings{Change: t.change, Revision: now.Revision, Document: edit.Document})
	})
	if err != nil {
		return SettingsTable{}, err
	}
	m.kit.ReadSettings(ctx)
	return m.settingsTable(stored)
}

// leavesAnOwner judges that somebody who could switch everything back can still sign
// in, and be let in here, and makes it a condition of the change that they stay who they are. Where no
// owner could before, nobody is shut out. Errors: CodeLastOwner.
func (m *Admin) leavesAnOwner(ctx context.Context, t *turn, edit host.SettingsEdit) error {
	unbanned, lost := false, false
	q := store.UserQuery{Role: auth.RoleOwner, Banned: &unbanned, Now: m.kit.Now(), Limit: maxPage}
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
			before, after := m.kit.LetsIn(edit, c, m.requireMFA)
			if after {
				t.change.KeepOwner = true
				t.change.IfUsers = append(t.change.IfUsers, auth.UserAt{ID: u.ID, CredentialRevision: &c.User.CredentialRevision})
				return nil
			}
			lost = lost || before
		}
		if len(list) < q.Limit {
			break
		}
		q.After = q.Cursor(list[len(list)-1])
	}
	if lost {
		return auth.Reject(auth.CodeLastOwner, "No owner could sign in any more. Leave a way in that one of them has.")
	}
	return nil
}

// TryResult is what came of trying something out.
type TryResult struct {
	OK     bool
	Queued bool   // not known yet: it is tried again for a while, as every message is
	Detail string // what was reached, or why it was not; no secrets
}

// TryMail sends a mail to the actor's own, proved address, and waits for the mail
// server's word, for up to ten seconds. It draws the limits of every message. Errors:
// CodeValidationFailed for an actor without such an address, CodeRateLimited.
func (m *Admin) TryMail(ctx context.Context, who Actor) (TryResult, error) {
	return m.testMessage(ctx, who, opTestMail, auth.ChannelEmail)
}

// TrySMS is TryMail of a text message to the actor's own number. Also
// CodeMethodDisabled without an SMSSender.
func (m *Admin) TrySMS(ctx context.Context, who Actor) (TryResult, error) {
	return m.testMessage(ctx, who, opTestSMS, auth.ChannelSMS)
}

func (m *Admin) testMessage(ctx context.Context, who Actor, op operation, by auth.Channel) (TryResult, error) {
	var test host.TestMessage // drawn once, however often the change is tried
	before, err := carryOut(ctx, m, who, op, "", auth.EventSettingsTested, func(t *turn) (TryResult, error) {
		t.record.Target = string(by)
		if t.user == nil {
			return TryResult{}, m.kit.Invalid("actor", "is no account with an address")
		}
		if test == nil {
			drawn, err := m.kit.DrawTest(ctx, *t.user, by)
			if err != nil {
				return TryResult{}, err
			}
			test = drawn
		}
		test.Enclose(ctx, &t.change)
		if err := t.keep(TryResult{Queued: true, Detail: "it was asked for before"}); err != nil {
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
		return TryResult{Detail: m.kit.Short(err.Error())}, nil
	case !done:
		return TryResult{Queued: true, Detail: "the first attempt takes long; it goes on"}, nil
	}
	return TryResult{OK: true, Detail: "it was handed over"}, nil
}

// TryProvider asks a provider for what can be asked without anybody signing in: its
// discovery document and its keys, past what is remembered of them. Errors:
// CodeUnknownProvider.
func (m *Admin) TryProvider(ctx context.Context, who Actor, name string) (TryResult, error) {
	_, err := carryOut(ctx, m, who, opTestProvider, "", auth.EventSettingsTested, func(t *turn) (store.StoredSettings, error) {
		if !m.kit.HasProvider(name) {
			return store.StoredSettings{}, m.fail(auth.CodeUnknownProvider, nil)
		}
		t.record.Target = name
		return m.project.PutSettings(ctx, store.PutSettings{Change: t.change})
	})
	if err != nil {
		return TryResult{}, err
	}
	detail, err := m.kit.ReachProvider(ctx, name)
	if err != nil {
		return TryResult{Detail: m.kit.Short(err.Error())}, nil //nolint:nilerr // that it cannot be reached is what was asked
	}
	return TryResult{OK: true, Detail: detail}, nil
}
