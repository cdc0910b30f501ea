package service_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/apikey"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// keyReads counts how often a store's keys are read, and may fail.
type keyReads struct {
	auth.Store
	store.ProjectStore
	lists atomic.Int64
	uses  atomic.Int64
	fails atomic.Bool
	read  func() // is called after each reading, before it is returned; may be nil
}

func newKeyReads(t *testing.T) *keyReads {
	t.Helper()
	s := harness.NewStore(t)
	keys, ok := store.Capability[store.ProjectStore](s)
	if !ok {
		t.Fatal("the store keeps no keys")
	}
	return &keyReads{Store: s, ProjectStore: keys}
}

func (s *keyReads) Unwrap() auth.Store { return s.Store }

func (s *keyReads) Keys(ctx context.Context, q store.KeyQuery) ([]store.APIKey, error) {
	s.lists.Add(1)
	if s.fails.Load() {
		return nil, errors.New("no keys today")
	}
	list, err := s.ProjectStore.Keys(ctx, q)
	if s.read != nil {
		s.read()
	}
	return list, err
}

func (s *keyReads) UseKey(ctx context.Context, id string, at time.Time) error {
	s.uses.Add(1)
	return s.ProjectStore.UseKey(ctx, id, at)
}

// put stores a key, and returns it with its text.
func (s *keyReads) put(t *testing.T, now time.Time, k store.APIKey) (store.APIKey, string) {
	t.Helper()
	k.ID = uuid.NewString()
	text, err := apikey.New(apikey.Parts{Public: k.Public, Environment: "live", ID: k.ID})
	if err != nil {
		t.Fatal(err)
	}
	k.Hash = apikey.Hash(text)
	return s.replace(t, now, k), text
}

func (s *keyReads) replace(t *testing.T, now time.Time, k store.APIKey) store.APIKey {
	t.Helper()
	k, err := s.PutKey(t.Context(), store.PutKey{Change: store.Change{Now: now, By: auth.Authority{System: "test"}}, Key: k})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Where a public key is required, the store's live keys are valid beside those of the
// option. A secret key or an expired one is not.
func TestPublicKeysOfTheStore(t *testing.T) {
	t.Parallel()
	st := newKeyReads(t)
	w := harness.NewWorldOn(t, st, auth.WithAPIKeys("pk_test_12345678"))
	now := w.Clock.Now()
	live, text := st.put(t, now, store.APIKey{Public: true})
	rotated, newest := st.put(t, now, store.APIKey{Public: true})
	_, expired := st.put(t, now, store.APIKey{Public: true, ExpiresAt: now})
	_, secret := st.put(t, now, store.APIKey{Scopes: []string{"a"}})
	_, elsewhere := st.put(t, now, store.APIKey{Public: true, Networks: []string{"2001:db8::/32"}})
	_, here := st.put(t, now, store.APIKey{Public: true, Networks: []string{"192.0.2.0/24"}})
	ask := func(text string) *harness.Answer {
		return w.Do("GET", "/settings", nil, harness.Header{Name: "Apikey", Value: text})
	}
	for _, good := range []string{"pk_test_12345678", text, newest, here} {
		ask(good).Want(200)
		w.Do("GET", "/settings", nil, harness.Header{Name: "X-API-Key", Value: good}).Want(200)
	}
	for _, bad := range []string{"", "pk_test_1234567", expired, secret, elsewhere, oldKey(t, live.ID), text[:len(text)-1]} {
		ask(bad).Want(401, auth.CodeInvalidAPIKey)
	}
	w.Do("GET", "/me", nil, harness.Header{Name: "Apikey", Value: text}, harness.Bearer(text)).Want(401, auth.CodeMissingToken) // as client libraries do

	// The key before a rotation, and keys that expired meanwhile.
	before := oldKey(t, rotated.ID)
	rotated.PreviousHash, rotated.PreviousUntil = apikey.Hash(before), now.Add(time.Hour)
	st.replace(t, now, rotated)
	host.Of(w).ReloadKeys()
	ask(before).Want(200)
	w.Clock.Advance(time.Hour)
	ask(before).Want(401, auth.CodeInvalidAPIKey)
	ask(newest).Want(200)

	live.RevokedAt = now
	st.replace(t, now, live)
	stopped := time.Now()
	for ask(text).Status == 200 {
		if time.Since(stopped) > time.Second {
			t.Fatal("a key that was revoked is good for more than a second")
		}
	}
}

// A key that is revoked during a read of the keys is not cached as valid: a result from
// before the change is discarded.
func TestKeyRevokedWhileKeysAreRead(t *testing.T) {
	t.Parallel()
	st := newKeyReads(t)
	w := harness.NewWorldOn(t, st, auth.WithAPIKeys("pk_test_12345678"))
	k, text := st.put(t, w.Clock.Now(), store.APIKey{Public: true})
	ask := func() *harness.Answer {
		return w.Do("GET", "/settings", nil, harness.Header{Name: "Apikey", Value: text})
	}
	st.read = func() {
		st.read = nil
		k.RevokedAt = w.Clock.Now()
		st.replace(t, w.Clock.Now(), k)
		host.Of(w).ReloadKeys()
	}
	ask() // as it was when this began
	ask().Want(401, auth.CodeInvalidAPIKey)
}

// All public keys are valid, however many there are.
func TestManyPublicKeys(t *testing.T) {
	t.Parallel()
	st := newKeyReads(t)
	w := harness.NewWorldOn(t, st, auth.WithAPIKeys("pk_test_12345678"))
	var texts []string
	for range 401 {
		_, text := st.put(t, w.Clock.Now(), store.APIKey{Public: true})
		texts = append(texts, text)
	}
	for _, text := range texts {
		w.Do("GET", "/settings", nil, harness.Header{Name: "Apikey", Value: text}).Want(200)
	}
}

// oldKey returns a made-up key with an id.
func oldKey(t *testing.T, id string) string {
	t.Helper()
	text, err := apikey.New(apikey.Parts{Public: true, Environment: "live", ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Made-up keys cause no reads of their own, and uses are recorded once a minute. If the
// store fails, a key that only it knows gets 503 unavailable.
func TestPublicKeysAreRemembered(t *testing.T) {
	t.Parallel()
	st := newKeyReads(t)
	w := harness.NewWorldOn(t, st, auth.WithAPIKeys("pk_test_12345678"))
	k, text := st.put(t, w.Clock.Now(), store.APIKey{Public: true})
	begun := time.Now()
	for range 40 {
		w.Do("GET", "/settings", nil, harness.Header{Name: "Apikey", Value: oldKey(t, uuid.NewString())}).Want(401, auth.CodeInvalidAPIKey)
		w.Do("GET", "/settings", nil, harness.Header{Name: "Apikey", Value: text}).Want(200)
		w.Do("GET", "/settings", nil, harness.Header{Name: "Apikey", Value: "pk_live_nonsense"}).Want(401, auth.CodeInvalidAPIKey)
	}
	if reads, most := st.lists.Load(), int64(time.Since(begun)/(time.Second/2))+1; reads > most {
		t.Errorf("%d reads, want at most %d", reads, most)
	}
	if got, err := st.Key(t.Context(), k.ID); err != nil || !got.LastUsedAt.Equal(w.Clock.Now()) {
		t.Errorf("last used %v, %v", got.LastUsedAt, err)
	}
	st.fails.Store(true)
	host.Of(w).ReloadKeys()
	w.Do("GET", "/settings", nil, harness.Header{Name: "Apikey", Value: text}).Want(503, auth.CodeUnavailable)
	w.Do("GET", "/settings", nil, harness.Header{Name: "Apikey", Value: "pk_test_12345678"}).Want(200)
	w.Do("GET", "/settings", nil, harness.Header{Name: "Apikey", Value: "pk_live_nonsense"}).Want(401, auth.CodeInvalidAPIKey)
}

// operating serves an endpoint that takes a secret key.
func operating(w *harness.World) http.Handler {
	kit := host.Of(w)
	return kit.Handler("/room", []host.Route{{Pattern: "GET /who", Access: host.Operating, Handle: func(rw http.ResponseWriter, r *http.Request) error {
		text, ok := kit.RequestKey(r.Context())
		_, u := kit.Current(r.Context())
		if ok {
			k, err := kit.SecretKey(r.Context(), text)
			if err != nil {
				return err
			}
			return kit.WriteJSON(rw, http.StatusOK, map[string]string{"key": k.Name})
		}
		return kit.WriteJSON(rw, http.StatusOK, map[string]string{"user": u.ID})
	}}})
}

// A secret key alone grants access to its endpoints, and to nothing else. Every invalid key
// gets the same answer.
func TestSecretKeys(t *testing.T) {
	t.Parallel()
	st := newKeyReads(t)
	const option, public = "sk_test_0123456789", "pk_test_12345678"
	w := harness.NewWorldOn(t, st, auth.WithAPIKeys(public), auth.WithSecretKeys(auth.SecretKey{Key: option, Scopes: []string{"*"}}))
	room := operating(w)
	now := w.Clock.Now()
	k, text := st.put(t, now, store.APIKey{Name: "job", Scopes: []string{"a"}})
	_, expired := st.put(t, now, store.APIKey{Scopes: []string{"a"}, ExpiresAt: now})
	_, revoked := st.put(t, now, store.APIKey{Scopes: []string{"a"}, RevokedAt: now})
	_, elsewhere := st.put(t, now, store.APIKey{Scopes: []string{"a"}, Networks: []string{"2001:db8::/32"}})
	_, asPublic := st.put(t, now, store.APIKey{Public: true})
	other, err := apikey.New(apikey.Parts{Environment: "live", ID: k.ID})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(headers ...harness.Header) *harness.Answer {
		return w.DoOn(room, "GET", "/room/who", nil, headers...)
	}
	for _, good := range []harness.Header{harness.Bearer(text), {Name: "Apikey", Value: text}, {Name: "X-Api-Key", Value: text}, {Name: "Authorization", Value: "bearer " + text}} {
		if got := harness.DecodeAs[map[string]string](ask(good).Want(200)); got["key"] != "job" {
			t.Errorf("%v: %v", good.Name, got)
		}
	}
	if got, err := st.Key(t.Context(), k.ID); err != nil || !got.LastUsedAt.Equal(now) || got.Revision != k.Revision {
		t.Errorf("%+v, %v", got, err)
	}
	if n := st.uses.Load(); n != 1 {
		t.Errorf("the use is noted %d times in a minute", n)
	}
	ask(harness.Bearer(option)).Want(200)
	said := ""
	for _, bad := range []string{expired, revoked, elsewhere, other, option + "0", "sk_", "sk_live_x", strings.Replace(asPublic, "pk_", "sk_", 1)} {
		a := ask(harness.Bearer(bad)).Want(401, auth.CodeInvalidAPIKey)
		body := harness.DecodeAs[map[string]any](a)
		delete(body, "request_id")
		if said == "" {
			said = fmt.Sprint(body)
		}
		if fmt.Sprint(body) != said {
			t.Errorf("%v, and otherwise %s", body, said)
		}
	}
	ada := w.LoginAs(t, "ada@example.com")
	ask(harness.Bearer(ada.AccessToken)).Want(401, auth.CodeInvalidAPIKey) // users need the public key here as elsewhere
	ask(harness.Bearer(ada.AccessToken), harness.Header{Name: "Apikey", Value: text}).Want(401, auth.CodeInvalidAPIKey)
	if got := harness.DecodeAs[map[string]string](ask(harness.Bearer(ada.AccessToken), harness.Header{Name: "Apikey", Value: public}).Want(200)); got["user"] != ada.User.ID {
		t.Errorf("%v", got)
	}
	ask(harness.Header{Name: "Apikey", Value: public}).Want(401, auth.CodeMissingToken)
	for _, key := range []string{text, option} {
		w.Do("GET", "/me", nil, harness.Bearer(key), harness.Header{Name: "Apikey", Value: public}).Want(401, auth.CodeBadToken)
		w.Do("GET", "/settings", nil, harness.Header{Name: "Apikey", Value: key}).Want(401, auth.CodeInvalidAPIKey)
		for _, browser := range []harness.Header{{Name: "Origin", Value: "https://app.test"}, {Name: "Origin", Value: "null"}, {Name: "Sec-Fetch-Site", Value: "same-origin"}} {
			ask(harness.Bearer(key), browser).Want(401, auth.CodeInvalidAPIKey)
		}
	}
	if found := w.Lines("level=INFO.*a browser sent a secret key"); len(found) == 0 {
		t.Error("the log does not tell of a key in a browser")
	}
	if strings.Contains(w.Log.String(), text) || strings.Contains(w.Log.String(), option) {
		t.Error("the log has a key")
	}
}

// Wrong secret keys count by the client's IP address. The right one works all the same,
// because strangers behind the same address could otherwise lock a program out.
func TestSecretKeysAreLimited(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOn(t, newKeyReads(t), auth.WithSecretKeys(auth.SecretKey{Key: "sk_test_0123456789", Scopes: []string{"*"}}),
		auth.WithRateLimits(auth.RateLimits{SecretKeysPerIP: auth.Rate{Burst: 3, Per: time.Hour}}))
	room := operating(w)
	ask := func(key string) *harness.Answer { return w.DoOn(room, "GET", "/room/who", nil, harness.Bearer(key)) }
	for i := range 3 {
		ask(fmt.Sprint("sk_test_000000000", i)).Want(401, auth.CodeInvalidAPIKey)
	}
	ask("sk_test_0000000009").Want(429, auth.CodeRateLimited)
	ask("sk_test_0123456789").Want(200)
	w.Clock.Advance(time.Hour)
	ask("sk_test_0000000009").Want(401, auth.CodeInvalidAPIKey)
}
