package admin

import (
	"context"
	"encoding/json"
)

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
