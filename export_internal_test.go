package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// parted is a store of one account for exports; any of its calls may fail.
type parted struct {
	Store
	store.Journal
	fails string
	calls []string
}

func (s *parted) ask(what string) error {
	if s.calls = append(s.calls, what); s.fails == what {
		return errors.New("away")
	}
	return nil
}

func (s *parted) UserRecords(_ context.Context, userID string, now time.Time) (UserRecords, error) {
	return UserRecords{Devices: []store.DeviceRecord{{Device: "of " + userID, FirstSeenAt: now}}}, s.ask("held")
}

func (s *parted) Events(_ context.Context, q store.EventQuery) ([]Event, error) {
	return []Event{{ID: "e", UserID: q.UserID}}[:min(1, q.Limit)], s.ask("events")
}

// partedFactors are the account's second factors.
type partedFactors struct {
	store.FactorStore
	*parted
}

func (s partedFactors) Factors(_ context.Context, userID string) (store.Factors, error) {
	at := time.Unix(7, 0)
	return store.Factors{RecoveryLeft: 3, List: []Factor{
		{ID: "k", UserID: userID, Kind: store.FactorPasskey, Label: "Phone", Required: true, Enabled: true, Secret: []byte("record"), State: []byte("state"), CreatedAt: at, LastUsedAt: at},
		{ID: "f", UserID: userID, Kind: store.FactorTOTP, Enabled: true, Secret: []byte("secret"), State: []byte{7}, CreatedAt: at}, {ID: "g", UserID: userID, Secret: []byte("other"), State: []byte{8}},
	}}, s.ask("factors")
}

// partedPasskeys are passkeys whose record is their id.
type partedPasskeys struct{ host.Passkeys }

func (partedPasskeys) Record(k host.Passkey) (PasskeyRecord, error) {
	if string(k.Record) != "record" || string(k.State) != "state" {
		return PasskeyRecord{}, errors.New("unreadable")
	}
	return PasskeyRecord{CredentialID: "of " + string(k.Record)}, nil
}

// An export contains every part of the account, without the secrets of second factors. If
// a part cannot be read, the export fails.
func TestExportsHaveEveryPart(t *testing.T) {
	now, at := time.Unix(1767323045, 0).UTC(), time.Unix(7, 0).UTC()
	for _, fails := range []string{"", "factors", "held", "events"} {
		s := &parted{fails: fails}
		a := &Auth{store: s, journal: s, factors: partedFactors{parted: s}, cfg: config{now: func() time.Time { return now }, passkeys: partedPasskeys{}}}
		e := &Export{User: User{ID: "ada"}}
		if err := a.exportMore(t.Context(), e); (err != nil) != (fails != "") {
			t.Errorf("without %q: %v", fails, err)
		}
		if e.events = nil; fails != "" {
			continue
		}
		want := &Export{
			User: User{ID: "ada"}, CodesLeft: 3, UserRecords: UserRecords{Devices: []store.DeviceRecord{{Device: "of ada", FirstSeenAt: now}}}, first: []Event{{ID: "e", UserID: "ada"}},
			Passkeys: []PasskeyRecord{{CredentialID: "of record", Name: "Phone", SecondFactor: true, CreatedAt: at, LastUsedAt: &at}},
			Factors:  []Factor{{ID: "k", UserID: "ada", Kind: store.FactorPasskey, Label: "Phone", Required: true, Enabled: true, CreatedAt: time.Unix(7, 0), LastUsedAt: time.Unix(7, 0)}, {ID: "f", UserID: "ada", Kind: store.FactorTOTP, Enabled: true, CreatedAt: time.Unix(7, 0)}, {ID: "g", UserID: "ada"}},
		}
		if !reflect.DeepEqual(e, want) {
			t.Errorf("%+v\nwant %+v", e, want)
		}
	}
	bare := &Export{User: User{ID: "ada"}}
	want := &Export{User: User{ID: "ada"}, UserRecords: UserRecords{Devices: []store.DeviceRecord{{Device: "of ada", FirstSeenAt: now}}}}
	if err := (&Auth{store: &parted{}, cfg: config{now: func() time.Time { return now }}}).exportMore(t.Context(), bare); err != nil || !reflect.DeepEqual(bare, want) {
		t.Errorf("of a store that keeps little: %+v, %v", bare, err)
	}
}

// The size of metadata is measured with numbers written out, as Postgres stores and
// returns them. Otherwise an account could be many times larger to read than to write.
func TestMetadataAreBoundedWithNumbersWrittenOut(t *testing.T) {
	list := func(n int, v any) map[string]any {
		all := make([]any, n)
		for i := range all {
			all[i] = v
		}
		return map[string]any{"a": all}
	}
	for name, c := range map[string]struct {
		m    map[string]any
		good bool
	}{
		"small ones":                 {list(2000, 5.5), true},
		"the smallest, few":          {list(40, math.SmallestNonzeroFloat64), true},
		"the smallest, many":         {list(60, math.SmallestNonzeroFloat64), false},
		"the largest, few":           {list(50, math.MaxFloat64), true},
		"the largest, many":          {list(60, -math.MaxFloat64), false},
		"large ones of Go, few":      {list(50, json.Number("1e308")), true},
		"large ones of Go, many":     {list(60, json.Number("1E+308")), false},
		"beyond what numbers can be": {list(1, json.Number("1e400")), false},
		"texts that look so":         {list(1500, "1e308"), true},
		"names that look so":         {map[string]any{strings.Repeat("1e308 ", 2500): 1e300}, true},
	} {
		if err := checkMetadata(c.m); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRate(f *testing.F) {
	f.Add(5, int64(time.Minute), int64(0), 1)
	f.Add(3, int64(time.Second), int64(-5), -2)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, burst int, per, offset int64, cost int) {
		if burst < 1 || burst > 1000 || per < int64(time.Millisecond) || per > int64(24*time.Hour) || cost < -2000 || cost > 2000 || offset > per || offset < -per {
			return
		}
		r := Rate{Burst: burst, Per: time.Duration(per)}
		next, ok, wait, remaining := r.Apply(store.Bucket{Full: now.Add(time.Duration(offset))}, now, cost)
		if remaining < 0 || remaining > burst || (ok && wait != 0) || (!ok && wait <= 0) || (ok && cost != 0 && next.Full.Before(now)) {
			t.Errorf("%v %d %d: %v %v %v %d", r, offset, cost, next, ok, wait, remaining)
		}
	})
}

// A zero rate refuses nothing and requires no wait.
func TestNoRate(t *testing.T) {
	t.Parallel()
	for _, r := range []Rate{{}, {Burst: 5}, {Per: time.Minute}} {
		if _, ok, wait, remaining := r.Apply(store.Bucket{}, time.Now(), 7); !ok || wait != 0 || remaining < 1 {
			t.Errorf("%v: %t %v %d", r, ok, wait, remaining)
		}
	}
}

func FuzzVerify(f *testing.F) {
	c := &config{secrets: [][]byte{[]byte("a secret of the fuzzer's, 32 b.!")}, now: func() time.Time { return time.Unix(1767323045, 0) }}
	c.tokens.Issuer = "https://auth.test"
	c.tokens.Remember = -1
	a := &Auth{cfg: *c}
	if err := a.buildTokens(); err != nil {
		f.Fatal(err)
	}
	valid, _, err := a.accessToken(context.Background(), User{ID: "u"}, Session{ID: "s"}, nil, c.now())
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{valid, valid + "A", valid[1:], "a.b.c", "..", "eyJhbGciOiJub25lIn0.e30.", strings.ToLower(valid)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if claims, err := a.Verify(s); err == nil && claims.UserID != "u" {
			t.Errorf("%q is accepted: %+v", s, claims)
		}
	})
}

// An export that cannot be completed is invalid: the caller gets an error, and a browser
// sees an aborted download.
func TestExportsThatBreakOff(t *testing.T) {
	number := map[string]any{"x": math.Inf(1)} // JSON cannot represent it
	page := make([]Event, exportPage)
	for name, e := range map[string]*Export{
		"in the account": {User: User{ID: "ada", UserMetadata: number}},
		"in an event":    {User: User{ID: "ada"}, first: []Event{{ID: "e", Record: &store.Record{Changes: map[string]store.FieldChange{"x": {After: number}}}}}},
		"between pages":  {User: User{ID: "ada"}, first: page, events: func(context.Context, *Event) ([]Event, error) { return nil, errors.New("away") }},
	} {
		var out bytes.Buffer
		if err := e.Write(t.Context(), &out); err == nil || json.Valid(out.Bytes()) {
			t.Errorf("%s: %v, %d bytes", name, err, out.Len())
		}
		var log bytes.Buffer
		a := &Auth{cfg: config{log: slog.New(slog.NewTextHandler(&log, nil))}}
		func() {
			defer func() {
				if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // the very value
					t.Errorf("%s: ends with %v", name, v)
				}
			}()
			t.Error(a.writeExport(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/me/export", http.NoBody), e))
		}()
		if log.Len() == 0 {
			t.Errorf("%s: the log does not say", name)
		}
	}
}

// An export contains the times of pending messages and of their deletion.
func TestExportsTellOfMessages(t *testing.T) {
	at := time.Unix(1767323045, 0).UTC()
	e := &Export{UserRecords: UserRecords{Messages: []store.PendingMessage{{CreatedAt: at, ExpiresAt: at.Add(time.Hour)}}}}
	if got := e.view().Messages; len(got) != 1 || got[0] != (heldOnlyView{at, at.Add(time.Hour)}) {
		t.Errorf("%+v", got)
	}
}
