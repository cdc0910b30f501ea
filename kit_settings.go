package auth

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

func (k kit) Settings(stored store.StoredSettings) ([]host.Setting, error) {
	d, err := parseDocument(stored.Document)
	if err != nil {
		return nil, fail(CodeInternal, err)
	}
	o := &k.a.settings.options
	s, faults := o.settle(&k.a.cfg, d)
	var list []host.Setting
	for _, f := range settingFields() {
		why := o.lockedBy(&k.a.cfg, f)
		list = append(list, host.Setting{Name: f.name, Value: f.value(&s), Source: o.source(f, d, faults), Locked: why != "", Why: why})
	}
	return list, nil
}

// settingsPair is the private part of a KitSettingsEdit.
type settingsPair struct{ before, after Settings }

func (k kit) EditSettings(stored store.StoredSettings, changes map[string]json.RawMessage) (host.SettingsEdit, error) {
	var e host.SettingsEdit
	d, err := parseDocument(stored.Document)
	if err != nil {
		return e, fail(CodeInternal, err)
	}
	o := &k.a.settings.options
	next, err := o.edit(&k.a.cfg, d, changes)
	if err != nil {
		return e, err
	}
	if e.Document, err = json.Marshal(next); err != nil {
		return e, fail(CodeBadJSON, err)
	}
	var both settingsPair
	both.before, _ = o.settle(&k.a.cfg, d)
	both.after, _ = o.settle(&k.a.cfg, next)
	e.Private = both
	e.Changes = map[string]store.FieldChange{}
	for _, f := range settingFields() {
		if was, is := f.value(&both.before), f.value(&both.after); !reflect.DeepEqual(was, is) {
			e.Changes[f.name] = store.FieldChange{Before: was, After: is}
		}
	}
	return e, nil
}

func (k kit) LetsIn(e host.SettingsEdit, c store.Credentials, factor bool) (before, after bool) {
	both, _ := e.Private.(settingsPair)
	return k.a.wayIn(both.before, c, factor), k.a.wayIn(both.after, c, factor)
}

func (k kit) ReadSettings(ctx context.Context) {
	if err := k.a.readSettings(context.WithoutCancel(ctx)); err != nil {
		k.a.cfg.log.WarnContext(ctx, "auth: the settings cannot be read", "error", err)
	}
}

func (k kit) SettingsRead() (revision int64, at time.Time) {
	if n := k.a.settings.readAt.Load(); n > 0 {
		at = time.Unix(0, n).UTC()
	}
	return k.a.settings.now.Load().revision, at
}
