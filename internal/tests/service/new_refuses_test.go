package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// A limit without a period is refused, because it would be off silently.
func TestRatesNeedATime(t *testing.T) {
	limits := reflect.TypeFor[auth.RateLimits]()
	for i := range limits.NumField() {
		field := limits.Field(i)
		if field.Type != reflect.TypeFor[auth.Rate]() {
			continue
		}
		t.Run(field.Name, func(t *testing.T) {
			for _, per := range []time.Duration{0, -time.Second} {
				var l auth.RateLimits
				reflect.ValueOf(&l).Elem().Field(i).Set(reflect.ValueOf(auth.Rate{Burst: 3, Per: per}))
				if got := harness.Refusal(t, auth.WithRateLimits(l)); !strings.Contains(got, "WithRateLimits: "+field.Name+":") {
					t.Errorf("%q", got)
				}
			}
		})
	}
}

func TestNewRefusesNilOptions(t *testing.T) {
	if got := harness.Refusal(t, nil); !strings.Contains(got, "option 2 of 2 is nil") {
		t.Errorf("%q", got)
	}
}

// unready is a store that cannot be used, by its own word or as its settings are away.
type unready struct {
	auth.Store
	store.ProjectStore
	check, settings error
}

func (s *unready) Check(context.Context) error { return s.check }

func (s *unready) Settings(context.Context) (store.StoredSettings, error) {
	return store.StoredSettings{}, s.settings
}

// A service does not start on a store that is not ready or has unknown settings.
func TestNewRefusesStoresThatAreNotReady(t *testing.T) {
	for name, c := range map[string]struct {
		store *unready
		says  string
	}{
		"ready":            {&unready{}, ""},
		"not migrated":     {&unready{check: errors.New("migrate it")}, "auth.New: migrate it"},
		"without settings": {&unready{settings: errors.New("away")}, "auth.New: the settings cannot be read: away"},
	} {
		m := memstore.New()
		c.store.Store, c.store.ProjectStore = m, m
		a, err := auth.New(t.Context(), c.store, auth.WithDevMode())
		if a != nil {
			if err := a.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if got := fmt.Sprint(err); (err == nil) != (c.says == "") || err != nil && got != c.says || (a == nil) != (err != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Browsers would drop cookies of such a name, so that no sign-in would work.
func TestNewRefusesNamesThatNoCookieHas(t *testing.T) {
	for _, name := range []string{"a b", "a=b", "a;b", "a,b", "ä", "a\n", `"a"`, "a/b"} {
		if got := harness.Refusal(t, auth.WithCookies(auth.CookieOptions{Name: name})); !strings.Contains(got, "WithCookies: ") {
			t.Errorf("%q: %q", name, got)
		}
	}
	harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{Name: "my-app_1"}))
}

// An application may leave the route to the inbox in when it has a mailer.
func TestNoInboxIsNotFound(t *testing.T) {
	a, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), auth.WithMailer(auth.NewInbox()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	mux := http.NewServeMux()
	mux.Handle("/dev/", a.Inbox())
	rec := httptest.NewRecorder()
	mux.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/dev/inbox", nil))
	if rec.Code != http.StatusNotFound {
		t.Errorf("status %d", rec.Code)
	}
}

// A service logs which interfaces its store lacks, once, and an operation that needs one
// of them names it.
func TestMissingInterfacesAreNamed(t *testing.T) {
	m := memstore.New()
	for name, c := range map[string]struct {
		store auth.Store
		want  []string
	}{
		"whole": {m, nil},
		"a store that lacks the journal": {struct {
			auth.Store
			store.FactorStore
			store.ProjectStore
			store.AdminStore
		}{m, m, m, m}, []string{"store.Journal"}},
		"bare": {harness.PlainStore{Store: m}, []string{"store.FactorStore", "store.Journal", "store.ProjectStore", "store.AdminStore"}},
	} {
		var log harness.SyncBuffer
		a, err := auth.New(t.Context(), c.store, auth.WithDevMode(), auth.WithLogger(slog.New(slog.NewJSONHandler(&log, nil))))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close(context.Background()) })
		lines := 0
		for line := range strings.Lines(log.String()) {
			if !strings.Contains(line, "lacks interfaces") {
				continue
			}
			lines++
			var got map[string]any
			if err := json.Unmarshal([]byte(line), &got); err != nil || got["level"] != "INFO" || len(got) != len(c.want)+3 {
				t.Errorf("%s: %s, %v", name, line, err)
			}
			for _, face := range c.want {
				if features, _ := got[face].(string); features == "" {
					t.Errorf("%s: nothing about %s in %s", name, face, line)
				}
			}
		}
		if want := min(len(c.want), 1); lines != want {
			t.Errorf("%s: %d lines, want %d", name, lines, want)
		}
	}
	a, err := auth.New(t.Context(), harness.PlainStore{Store: m}, auth.WithDevMode())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(context.Background()) })
	for face, do := range map[string]func() error{
		"SetupTOTP: store.FactorStore": func() error {
			_, err := a.SetupTOTP(t.Context(), auth.SetupTOTPParams{})
			if !errors.Is(err, auth.CodeMethodDisabled) {
				t.Errorf("SetupTOTP: %v", err)
			}
			return err
		},
		"EnableTOTP: store.FactorStore": func() error {
			_, err := a.EnableTOTP(t.Context(), auth.EnableTOTPParams{})
			return err
		},
		"NewRecoveryCodes: store.FactorStore": func() error {
			_, err := a.NewRecoveryCodes(t.Context(), auth.NewRecoveryCodesParams{})
			return err
		},
		"Rotation: store.AdminStore": func() error {
			_, err := a.Rotation(t.Context())
			return err
		},
	} {
		_, face, _ := strings.Cut(face, ": ")
		if err := do(); err == nil || !strings.Contains(err.Error(), "implements "+face) {
			t.Errorf("%v, want it to name %s", err, face)
		}
	}
}
