package oauth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
)

// A stolen ID token reveals its nonce. Where the nonce is a SHA-256, the caller must send
// the value that was hashed: neither the hash itself nor its hash is accepted.
func TestStolenIDToken(t *testing.T) {
	idp := authtest.StartProvider(t)
	w := harness.NewWorld(t, auth.WithProvider(idp.Google()))
	idp.Now = w.Clock.Now
	post := func(inToken string, given any) *harness.Answer {
		return w.Do("POST", "/oauth/google/id-token", map[string]any{"id_token": idp.IDToken("google", harness.Ada, inToken), "nonce": given})
	}
	const raw = "what the app chose"
	sum := sha256.Sum256([]byte(raw))
	for name, hashed := range map[string]string{
		"hex": hex.EncodeToString(sum[:]), "capitals": strings.ToUpper(hex.EncodeToString(sum[:])),
		"base64url": base64.RawURLEncoding.EncodeToString(sum[:]), "base64": base64.StdEncoding.EncodeToString(sum[:]),
		"padded base64url": base64.URLEncoding.EncodeToString(sum[:]), "base64 without padding": base64.RawStdEncoding.EncodeToString(sum[:]),
	} {
		again := sha256.Sum256([]byte(hashed))
		for how, given := range map[string]any{
			"as it is": hashed, "in small letters": strings.ToLower(hashed), "in hex": hex.EncodeToString(sum[:]), "in base64": base64.RawURLEncoding.EncodeToString(sum[:]),
			"hashed again": hex.EncodeToString(again[:]), "hashed again, in base64": base64.RawURLEncoding.EncodeToString(again[:]), "left out": nil, "empty": "", "another": "x",
		} {
			if a := post(hashed, given); a.Status != 400 {
				t.Errorf("%s, %s: %d %s", name, how, a.Status, a.Body)
			}
		}
		post(hashed, raw).Want(200)
	}
	// A nonce that is no hash is in the token as it was chosen.
	post("plain", "plain").Want(200)
	plain := sha256.Sum256([]byte("plain"))
	post("plain", hex.EncodeToString(plain[:])).Want(400, auth.CodeInvalidToken)
	post("plain", "Plain").Want(400, auth.CodeInvalidToken)
}

// A token that an app posts is valid once, even if it returns in another form.
func TestIDTokenIsGoodOnce(t *testing.T) {
	idp := authtest.StartProvider(t)
	tap := storetap.New(harness.NewStore(t))
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}, Env: authtest.NewOn(t, tap, auth.WithProvider(idp.Google()), auth.WithRateLimits(auth.RateLimits{Off: true}))}
	idp.Now = w.Clock.Now
	post := func(token string) *harness.Answer {
		return w.Do("POST", "/oauth/google/id-token", map[string]any{"id_token": token, "nonce": "n"})
	}
	token := idp.IDToken("google", harness.Ada, "n")
	post(token).Want(200)
	for name, form := range map[string]string{
		"as it was": token, "with a space": token + " ", "with a line break": strings.Replace(token, ".", ".\n", 1),
	} {
		if a := post(form); a.Status != 400 {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	w.Clock.Advance(59 * time.Minute)
	post(token).Want(400, auth.CodeInvalidToken)
	w.Clock.Advance(2 * time.Minute) // it is expired
	post(token).Want(400, auth.CodeInvalidToken)
	post(idp.IDToken("google", harness.Ada, "n")).Want(200)

	// Of many at once one wins.
	token = idp.IDToken("google", harness.Ada, "n")
	var wg sync.WaitGroup
	var won atomic.Int32
	for range 20 {
		wg.Go(func() {
			if _, err := w.SignInWithIDToken(t.Context(), auth.IDTokenParams{Provider: "google", IDToken: token, Nonce: "n"}); err == nil {
				won.Add(1)
			}
		})
	}
	if wg.Wait(); won.Load() != 1 {
		t.Errorf("%d sign-ins by one token", won.Load())
	}

	// A sign-in that failed by a server fault may be repeated.
	token = idp.IDToken("google", harness.Ada, "n")
	ctx, cancel := context.WithCancel(t.Context())
	tap.Reset(storetap.Hooks{Before: func(_ context.Context, method string, _ int) {
		if method == "CreateSession" {
			cancel()
		}
	}})
	if _, err := w.SignInWithIDToken(ctx, auth.IDTokenParams{Provider: "google", IDToken: token, Nonce: "n"}); err == nil {
		t.Error("signed in without a store")
	}
	tap.Reset(storetap.Hooks{})
	post(token).Want(200)
	post(token).Want(400, auth.CodeInvalidToken)
}

// Every endpoint that takes a code challenge refuses a method without a challenge, which
// would silently disable PKCE, and any method but S256.
func TestChallengeMethods(t *testing.T) {
	idp := authtest.StartProvider(t)
	w := harness.NewWorld(t, auth.WithProvider(idp.Google()), auth.WithRateLimits(auth.RateLimits{Off: true}))
	s := w.Member("ada@example.com")
	doors := map[string]func(more map[string]string) *harness.Answer{
		"GET /oauth/{provider}": func(more map[string]string) *harness.Answer {
			q := "redirect_to=https://app.test/"
			for k, v := range more {
				q += "&" + k + "=" + v
			}
			return w.Do("GET", "/oauth/google?"+q, nil)
		},
		"POST /magic-link/send": func(more map[string]string) *harness.Answer {
			return w.Do("POST", "/magic-link/send", with(more, "email", "bob@example.com"))
		},
		"POST /me/identities/{provider}": func(more map[string]string) *harness.Answer {
			return w.Do("POST", "/me/identities/google", with(more, "redirect_to", "https://app.test/"), harness.Bearer(s.AccessToken))
		},
	}
	found := map[string]bool{}
	for path, methods := range documentPaths(t) {
		for method, operation := range methods {
			if named := strings.Contains(string(operation), "code_challenge_method") || strings.Contains(string(operation), "CodeChallengeMethod"); method != "head" && named {
				found[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	for pattern := range found {
		door, ok := doors[pattern]
		if !ok {
			t.Errorf("%s takes a challenge, and is not tried here", pattern)
			continue
		}
		for _, more := range []map[string]string{
			{"code_challenge_method": "S256"}, {"code_challenge_method": "S256", "code_challenge": ""}, {"code_challenge_method": "plain"},
			{"code_challenge_method": "plain", "code_challenge": harness.ChallengeOf(harness.Verifier)}, {"code_challenge_method": "s256", "code_challenge": harness.ChallengeOf(harness.Verifier)},
		} {
			if a := door(more); a.Status != http.StatusUnprocessableEntity {
				t.Errorf("%s with %v: %d %s", pattern, more, a.Status, a.Body)
			}
		}
		if a := door(map[string]string{"code_challenge_method": "S256", "code_challenge": harness.ChallengeOf(harness.Verifier)}); a.Status >= 400 {
			t.Errorf("%s: %d %s", pattern, a.Status, a.Body)
		}
	}
	if len(found) != len(doors) {
		t.Errorf("doors %v", found)
	}
}

// with is a body with one member more.
func with(more map[string]string, name, value string) map[string]string {
	body := map[string]string{name: value}
	for k, v := range more {
		body[k] = v
	}
	return body
}

// documentPaths are the operations of the document, by path and method.
func documentPaths(t *testing.T) map[string]map[string]json.RawMessage {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(harness.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Paths
}

// A used token is remembered as long as it is valid, so its lifetime must be limited.
func TestIDTokenLivesAMonthAtMost(t *testing.T) {
	idp := authtest.StartProvider(t)
	w := harness.NewWorld(t, auth.WithProvider(idp.Google()), auth.WithRateLimits(auth.RateLimits{Off: true}))
	for name, c := range map[string]struct {
		years, days int
		status      int
	}{
		"a month": {0, 29, 200}, "more than a month": {0, 31, 400}, "a century": {100, 0, 400},
		"longer than a duration": {293, 0, 400}, "much longer": {400, 0, 400}, "longest": {7000, 0, 400},
	} {
		idp.Now = func() time.Time { return w.Clock.Now().AddDate(c.years, 0, c.days) }
		token := idp.IDToken("google", harness.Ada, "n")
		for use, want := range []int{c.status, 400} {
			a := w.Do("POST", "/oauth/google/id-token", map[string]any{"id_token": token, "nonce": "n"})
			if a.Status != want || want == 400 && !strings.Contains(string(a.Body), string(auth.CodeInvalidToken)) {
				t.Errorf("%s, use %d: %d %s, want %d", name, use+1, a.Status, a.Body, want)
			}
		}
	}
}
