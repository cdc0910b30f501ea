package admin

import (
	"encoding/json"
	"net/http"
	"strconv"
)

var settingsEndpoints = []endpoint{
	{opSettings, (*Admin).handleSettings},
	{opSetSettings, (*Admin).handleSetSettings},
	{opTestMail, (*Admin).handleTestMail},
	{opTestSMS, (*Admin).handleTestSMS},
	{opTestProvider, (*Admin).handleTestProvider},
	{opDiagnostics, (*Admin).handleDiagnostics},
}

type settingView struct {
	Value  any    `json:"value"`
	Source string `json:"source"`
	Locked bool   `json:"locked"`
	Why    string `json:"locked_because,omitempty"`
}

func (m *Admin) writeSettings(w http.ResponseWriter, t SettingsTable, err error) error {
	if err != nil {
		return err
	}
	out := struct {
		Revision int64                  `json:"revision"`
		Settings map[string]settingView `json:"settings"`
	}{t.Revision, map[string]settingView{}}
	for _, s := range t.Settings {
		out.Settings[s.Name] = settingView{s.Value, s.Source, s.Locked, s.Why}
	}
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(t.Revision, 10)))
	return m.kit.WriteJSON(w, http.StatusOK, out)
}

func (m *Admin) handleSettings(who Actor, w http.ResponseWriter, r *http.Request) error {
	if err := m.values(r).done(); err != nil {
		return err
	}
	t, err := m.Settings(r.Context(), who)
	return m.writeSettings(w, t, err)
}

func (m *Admin) handleSetSettings(who Actor, w http.ResponseWriter, r *http.Request) error {
	var body map[string]json.RawMessage
	rev, err := m.ifMatch(r)
	if err == nil {
		err = m.kit.Decode(r, &body)
	}
	if err != nil {
		return err
	}
	set := map[string]any{}
	for name, raw := range body {
		set[name] = raw
	}
	t, err := m.SetSettings(r.Context(), who, SetSettingsParams{Set: set, Revision: rev})
	return m.writeSettings(w, t, err)
}

func (m *Admin) writeTest(w http.ResponseWriter, t TryResult, err error) error {
	if err != nil {
		return err
	}
	return m.kit.WriteJSON(w, http.StatusOK, struct {
		OK     bool   `json:"ok"`
		Queued bool   `json:"queued"`
		Detail string `json:"detail"`
	}(t))
}

func (m *Admin) handleTestMail(who Actor, w http.ResponseWriter, r *http.Request) error {
	t, err := m.TryMail(r.Context(), who)
	return m.writeTest(w, t, err)
}

func (m *Admin) handleTestSMS(who Actor, w http.ResponseWriter, r *http.Request) error {
	t, err := m.TrySMS(r.Context(), who)
	return m.writeTest(w, t, err)
}

func (m *Admin) handleTestProvider(who Actor, w http.ResponseWriter, r *http.Request) error {
	t, err := m.TryProvider(r.Context(), who, r.PathValue("name"))
	return m.writeTest(w, t, err)
}
