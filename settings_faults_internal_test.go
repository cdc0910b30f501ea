package auth

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth/store"
)

// Whatever the store says of settings that does not count, whoever runs the service is
// told of, each by its name, and of nothing else; the rest is in force.
func TestSettingsThatDoNotCountAreTold(t *testing.T) {
	for document, want := range map[string][]string{
		`{}`: nil,
		`{"sender_name":"Acme","signup_enabled":false}`:                           nil,
		`{"sender_name":"Acme","nothing":1}`:                                      {"nothing"},
		`{"sender_name":"Acme","signup_enabled":"perhaps"}`:                       {"signup_enabled"},
		`{"sender_name":"Acme","totp_enabled":false}`:                             {"totp_enabled"}, // of the options
		`{"sender_name":"Acme","nothing":1,"nought":2,"password_min_length":"x"}`: {"nothing", "nought", "password_min_length"},
	} {
		var log bytes.Buffer
		a := &Auth{cfg: config{log: slog.New(slog.NewTextHandler(&log, nil)), baseURL: &url.URL{Scheme: "https", Host: "auth.test"}, settings: Settings{TOTP: On}}}
		a.settings.options = a.cfg.newOptionSettings()
		d, err := parseDocument([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		s, faults := a.settings.options.settle(&a.cfg, d)
		if got := slices.Sorted(maps.Keys(faults)); !slices.Equal(got, want) {
			t.Errorf("%s: faults %v", document, faults)
		}
		if strings.Contains(document, "Acme") && s.SenderName != "Acme" || !s.TOTP.On() {
			t.Errorf("%s: %+v", document, s)
		}
		if err := a.put(t.Context(), store.StoredSettings{Revision: 7, Document: []byte(document)}); err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(log.String(), "revision=7"); told != (want != nil) {
			t.Errorf("%s: the log says %q", document, log.String())
		}
		for _, name := range want {
			if !strings.Contains(log.String(), name) {
				t.Errorf("%s: the log does not say %s: %q", document, name, log.String())
			}
		}
		// What was there already, nobody has to mend who changes something else.
		if _, err := a.settings.options.edit(&a.cfg, d, map[string]json.RawMessage{"auto_linking": []byte("false")}); err != nil {
			t.Errorf("%s, and another change: %v", document, err)
		}
	}
}
