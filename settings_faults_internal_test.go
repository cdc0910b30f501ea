package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// waywardSettings is a store of settings that is away now and then.
type waywardSettings struct {
	store.SettingsStore
	away atomic.Bool
}

func (s *waywardSettings) Settings(context.Context) (store.StoredSettings, error) {
	if s.away.Load() {
		return store.StoredSettings{}, errors.New("away")
	}
	return store.StoredSettings{}, nil
}

// While the settings cannot be read the log says so once, and once more when they can.
func TestSettingsThatCannotBeReadAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		s := &waywardSettings{}
		a := &Auth{cfg: config{log: slog.New(slog.NewTextHandler(&log, nil)), baseURL: &url.URL{Scheme: "https", Host: "auth.test"}}}
		a.settings.store = s
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); a.followSettings(ctx) }()
		after := func(gone bool, away, back int) {
			t.Helper()
			s.away.Store(gone)
			<-time.After(10 * time.Second) // the bubble's clock
			synctest.Wait()
			if n, m := strings.Count(log.String(), "cannot be read; those read last stay in force"), strings.Count(log.String(), "can be read again"); n != away || m != back || a.settings.failing.Load() != gone {
				t.Errorf("told %d and %d times, failing %t: %s", n, m, a.settings.failing.Load(), log.String())
			}
		}
		after(false, 0, 0)
		after(true, 1, 0)
		after(false, 1, 1)
		after(true, 2, 1)
		end()
		<-done
	})
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
