package harness

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/passkey"
	"github.com/authmount/auth/store"
)

// WithPasskeys turns passkeys on.
func WithPasskeys() auth.Option { return auth.WithPasskeys(passkey.New(passkey.Options{})) }

// NewKey returns an authenticator in a browser on the service's own pages.
func NewKey() *authenticator.Authenticator { return authenticator.New("https://auth.test") }

// PasskeyRecord creates a passkey that another system registered, and returns its record and
// user handle for an import.
func PasskeyRecord(tb testing.TB, key *authenticator.Authenticator) (r auth.PasskeyRecord, handle string) {
	tb.Helper()
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	encode := base64.RawURLEncoding.EncodeToString
	handle = encode(b)
	if _, err := key.Create(map[string]any{"rp": map[string]any{"id": "auth.test"}, "user": map[string]any{"id": handle}}); err != nil {
		tb.Fatal(err)
	}
	k := key.Passkeys[len(key.Passkeys)-1]
	_, public, _ := bytes.Cut(key.AttestedData(k), k.ID)
	return auth.PasskeyRecord{CredentialID: encode(k.ID), RPID: k.RPID, PublicKey: encode(public), UserVerified: true}, handle
}

// begun is the response of the endpoints that begin a ceremony.
type begun struct {
	PublicKey map[string]any `json:"public_key"`
	RequestID string         `json:"request_id"`
}

// sends sends a request of a test.
type sends func(method, path string, body any, h ...Header) *Answer

// Registration begins to add a passkey and returns the body that completes it.
func Registration(tb testing.TB, send sends, key *authenticator.Authenticator, second bool, h ...Header) map[string]any {
	tb.Helper()
	credential, err := key.Create(DecodeAs[begun](send("POST", "/me/passkeys/begin", nil, h...).Want(200)).PublicKey)
	if err != nil {
		tb.Fatal(err)
	}
	return map[string]any{"credential": credential, "second_factor": second}
}

// PasskeySignIn begins a sign-in and returns the body that completes it.
func PasskeySignIn(tb testing.TB, send sends, key *authenticator.Authenticator, h ...Header) map[string]any {
	tb.Helper()
	b := DecodeAs[begun](send("POST", "/passkeys/sign-in/begin", nil, h...).Want(200))
	credential, err := key.Get(b.PublicKey)
	if err != nil {
		tb.Fatal(err)
	}
	body := map[string]any{"credential": credential}
	if b.RequestID != "" {
		body["request_id"] = b.RequestID
	}
	return body
}

// PasskeyFactor begins the use of a passkey as a factor, with the token of a waiting sign-in
// or in a session, and returns the assertion.
func PasskeyFactor(tb testing.TB, send sends, key *authenticator.Authenticator, mfaToken string, h ...Header) any {
	tb.Helper()
	body := map[string]any{}
	if mfaToken != "" {
		body["mfa_token"] = mfaToken
	}
	assertion, err := key.Get(DecodeAs[begun](send("POST", "/2fa/passkey", body, h...).Want(200)).PublicKey)
	if err != nil {
		tb.Fatal(err)
	}
	return assertion
}

// AddsPasskey adds a passkey to the account of a session.
func (w *World) AddsPasskey(access string, second bool) *authenticator.Authenticator {
	w.T.Helper()
	key := NewKey()
	w.Do("POST", "/me/passkeys", Registration(w.T, w.Do, key, second, Bearer(access)), Bearer(access)).Want(200)
	return key
}

// addsPasskey adds a passkey in the scene's session.
func (s *Scene) addsPasskey(second bool) (key *authenticator.Authenticator, id string) {
	s.T.Helper()
	key = NewKey()
	a := s.Evil.Send("POST", "/me/passkeys", Registration(s.T, s.Evil.Send, key, second, s.Authorization()), s.Authorization()).Want(200)
	s.Enter(a)
	s.Mfa = s.Mfa || second && s.row.Kind == OnStolen
	return key, DecodeAs[struct{ Passkey struct{ ID string } }](a).Passkey.ID
}

// classPasskeys are the requests about passkeys. An unverified account has none.
func classPasskeys() map[string][]Row {
	within := func(name string, prepare func(*Scene) func() *Answer) []Row {
		return []Row{{Name: name, Kind: OnStolen, Session: true, Prepare: prepare}}
	}
	adds := func(second bool) func(*Scene) func() *Answer {
		return func(s *Scene) func() *Answer {
			first := Bearer(s.LoginAs(s.T, "first."+s.Email).AccessToken) // the first passkey of all stores the RP ID
			s.Evil.Send("POST", "/me/passkeys", Registration(s.T, s.Evil.Send, NewKey(), false, first), first).Want(200)
			body := Registration(s.T, s.Evil.Send, NewKey(), second, s.Authorization())
			return func() *Answer { return s.Evil.Send("POST", "/me/passkeys", body, s.Authorization()) }
		}
	}
	changes := func(method string, second bool, body map[string]any) func(*Scene) func() *Answer {
		return func(s *Scene) func() *Answer {
			_, id := s.addsPasskey(second)
			return func() *Answer { return s.Evil.Send(method, "/me/passkeys/"+id, body, s.Authorization()) }
		}
	}
	return map[string][]Row{
		"GET /me/passkeys":         ForKinds(Row{Name: "reads", Session: true, Prepare: Sends("GET", "/me/passkeys", nil)}, OnAddress, OnStolen),
		"POST /me/passkeys/begin":  within("begins", Sends("POST", "/me/passkeys/begin", nil)),
		"POST /me/passkeys":        append(within("adds", adds(false)), within("adds a second factor", adds(true))...),
		"PATCH /me/passkeys/{id}":  append(within("renames", changes("PATCH", false, map[string]any{"name": "Evil"})), within("no second factor any more", changes("PATCH", true, map[string]any{"second_factor": false}))...),
		"DELETE /me/passkeys/{id}": within("removes", changes("DELETE", false, map[string]any{})),
		"POST /passkeys/sign-in/finish": {{
			Name: "signs in", Kind: OnStolen, except: map[Act]string{byReset: "a reset of the password keeps passkeys, as it keeps identities"},
			Prepare: func(s *Scene) func() *Answer {
				key, _ := s.addsPasskey(false)
				body := PasskeySignIn(s.T, s.Evil.Send, key)
				return func() *Answer { return s.Evil.Send("POST", "/passkeys/sign-in/finish", body) }
			},
		}},
		"POST /2fa/passkey": {{Name: "begins", Kind: OnStolen, Prepare: func(s *Scene) func() *Answer {
			s.addsPasskey(true)
			body := map[string]any{"mfa_token": s.asked()}
			return func() *Answer { return s.Evil.Send("POST", "/2fa/passkey", body) }
		}}},
	}
}

// byPasskey is the second factor of a sign-in that waits, or of the session.
func byPasskey(waiting bool) func(*Scene) func() *Answer {
	return func(s *Scene) func() *Answer {
		key, _ := s.addsPasskey(true)
		if waiting {
			token := s.asked()
			body := map[string]any{"mfa_token": token, "passkey": PasskeyFactor(s.T, s.Evil.Send, key, token)}
			return func() *Answer { return s.Evil.Send("POST", "/2fa/verify", body) }
		}
		body := map[string]any{"passkey": PasskeyFactor(s.T, s.Evil.Send, key, "", s.Authorization())}
		return func() *Answer { return s.Evil.Send("POST", "/2fa/verify", body, s.Authorization()) }
	}
}

// passkeyEndpoint signs in with a passkey, for SignInEndpoints.
func passkeyEndpoint(w *World, _ *authtest.Provider, s Session) func(h ...Header) *Answer {
	key := w.AddsPasskey(s.AccessToken, false)
	body := PasskeySignIn(w.T, w.Do, key)
	return func(h ...Header) *Answer { return w.Do("POST", "/passkeys/sign-in/finish", body, h...) }
}

// enrolsByPasskey adds a passkey as the second factor that a sign-in needs.
func enrolsByPasskey(w *World, _ *authtest.Provider, s Session) func(h ...Header) *Answer {
	w.Patch(s.User.ID, store.UserPatch{AppMetadata: map[string]any{"mfa_required": true}})
	token := Bearer(w.MFATokenOf(auth.CodeMFAEnrollmentRequired))
	body := Registration(w.T, w.Do, NewKey(), false, token)
	return func(h ...Header) *Answer { return w.Do("POST", "/me/passkeys", body, append(h, token)...) }
}
