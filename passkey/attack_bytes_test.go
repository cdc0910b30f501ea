package passkey_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
)

// Client data made by hand.
func TestClientDataByHand(t *testing.T) {
	w := newWorld(t)
	_, err := w.add(false)
	w.must(err)
	k := w.key.Passkeys[0]
	for name, c := range map[string]struct {
		data string
		ok   bool
	}{
		"as it is":            {`{"type":"webauthn.get","challenge":"%s","origin":"https://auth.test","crossOrigin":false}`, true},
		"unknown members":     {`{"type":"webauthn.get","challenge":"%s","origin":"https://auth.test","crossOrigin":false,"other_keys_can_be_added_here":"do not compare","x":[1]}`, true},
		"no crossOrigin":      {`{"type":"webauthn.get","challenge":"%s","origin":"https://auth.test"}`, true},
		"cross origin":        {`{"type":"webauthn.get","challenge":"%s","origin":"https://auth.test","crossOrigin":true}`, false},
		"cross, top":          {`{"type":"webauthn.get","challenge":"%s","origin":"https://auth.test","crossOrigin":true,"topOrigin":"https://auth.test"}`, false},
		"top":                 {`{"type":"webauthn.get","challenge":"%s","origin":"https://auth.test","crossOrigin":false,"topOrigin":"https://evil.test"}`, false},
		"a creation":          {`{"type":"webauthn.create","challenge":"%s","origin":"https://auth.test"}`, false},
		"a payment":           {`{"type":"payment.get","challenge":"%s","origin":"https://auth.test"}`, false},
		"no type":             {`{"challenge":"%s","origin":"https://auth.test"}`, false},
		"trailing":            {`{"type":"webauthn.get","challenge":"%s","origin":"https://auth.test"}{}`, false},
		"list":                {`[{"type":"webauthn.get","challenge":"%s","origin":"https://auth.test"}]`, false},
		"number":              {`{"type":"webauthn.get","challenge":"%s","origin":7}`, false},
		"origins":             {`{"type":"webauthn.get","challenge":"%s","origin":["https://auth.test"]}`, false},
		"two origins":         {`{"type":"webauthn.get","challenge":"%s","origin":"https://auth.test","origin":"https://evil.test"}`, false},
		"two origins, folded": {`{"type":"webauthn.get","challenge":"%s","origin":"https://auth.test","ORIGIN":"https://evil.test"}`, false},
		"deep":                {`{"type":"webauthn.get","challenge":"%s","origin":"https://auth.test","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, false},
	} {
		p := w.begin()
		var response struct {
			Response struct {
				ClientDataJSON string `json:"clientDataJSON"`
			} `json:"response"`
		}
		w.must(json.Unmarshal(p.Credential, &response))
		raw, _ := base64.RawURLEncoding.DecodeString(response.Response.ClientDataJSON)
		var client struct{ Challenge string }
		w.must(json.Unmarshal(raw, &client))
		p.Credential, err = w.key.SignClientData(k, fmt.Appendf(nil, c.data, client.Challenge))
		w.must(err)
		_, err = w.FinishPasskeySignIn(t.Context(), p)
		if ok := err == nil; ok != c.ok || !ok && !errors.Is(err, auth.CodeInvalidPasskey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Bodies made by hand.
func TestBodiesByHand(t *testing.T) {
	w := newWorld(t)
	_, err := w.add(false)
	w.must(err)
	post := func(body string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, authtest.BaseURL+"/passkeys/sign-in/finish", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		w.Handler().ServeHTTP(rec, r)
		return rec.Code, rec.Body.String()
	}
	for name, change := range map[string]func(string) string{
		"twice":        func(s string) string { return strings.Replace(s, `"credential":`, `"credential":{},"credential":`, 1) },
		"twice inside": func(s string) string { return strings.Replace(s, `"signature":`, `"signature":"AAAA","signature":`, 1) },
		"BOM":          func(s string) string { return "\ufeff" + s },
		"trailing":     func(s string) string { return s + "{}" },
		"a megabyte":   func(s string) string { return s + strings.Repeat(" ", 1<<20) },
		"a long member": func(s string) string {
			return strings.Replace(s, `"type":`, `"x":"`+strings.Repeat("A", 1<<20)+`","type":`, 1)
		},
		"deep": func(s string) string {
			return strings.Replace(s, `"type":`, `"x":`+strings.Repeat("[", 10000)+strings.Repeat("]", 10000)+`,"type":`, 1)
		},
		"huge number": func(s string) string { return strings.Replace(s, `"type":`, `"x":1e999,"type":`, 1) },
		"type":        func(s string) string { return strings.Replace(s, `"public-key"`, `["public-key"]`, 1) },
		"a string":    func(s string) string { return `{"credential":"{}"}` },
		"a list":      func(s string) string { return `{"request_id":"x","credential":[]}` },
		"a number":    func(s string) string { return `{"request_id":"x","credential":1e400}` },
		"null":        func(s string) string { return `{"request_id":"x","credential":null}` },
	} {
		p := w.begin()
		raw, err := json.Marshal(map[string]any{"request_id": p.RequestID, "credential": p.Credential})
		w.must(err)
		if status, got := post(change(string(raw))); status < 400 || status >= 500 {
			t.Errorf("%s: %d %s", name, status, got)
		}
		if status, got := post(string(raw)); status != http.StatusOK {
			t.Errorf("%s, honest: %d %s", name, status, got)
		}
	}
}

// Registrations made by hand.
func TestRegistrationsByHand(t *testing.T) {
	w := newWorld(t)
	enc := base64.RawURLEncoding.EncodeToString
	for name, c := range map[string]struct {
		object func(data []byte) []byte
		flags  byte
		ok     bool
	}{
		"honest":        {object: nil, ok: true},
		"trailing":      {object: func(d []byte) []byte { return append(plain(d), 0) }},
		"trailing data": {object: func(d []byte) []byte { return plain(append(d, 0)) }},
		"twice": {object: func(d []byte) []byte {
			return slices.Concat([]byte{0xa4}, plain(d)[1:], []byte{0x63}, []byte("fmt"), []byte{0x64}, []byte("none"))
		}},
		"indefinite": {object: func(d []byte) []byte { return slices.Concat([]byte{0xbf}, plain(d)[1:], []byte{0xff}) }},
		"tagged":     {object: func(d []byte) []byte { return slices.Concat([]byte{0xd9, 0xd9, 0xf7}, plain(d)) }},
		"deep": {object: func(d []byte) []byte {
			return slices.Concat([]byte{0xa4}, plain(d)[1:], []byte{0x61, 'x'}, bytes.Repeat([]byte{0x81}, 10000), []byte{0})
		}},
		"huge length":    {object: func(d []byte) []byte { return []byte{0xa1, 0x7b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff} }},
		"huge map":       {object: func(d []byte) []byte { return []byte{0xbb, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff} }},
		"empty":          {object: func(d []byte) []byte { return nil }},
		"no data":        {object: func(d []byte) []byte { return plain(nil) }},
		"cut":            {object: func(d []byte) []byte { return plain(d[:60]) }},
		"no credential":  {object: func(d []byte) []byte { d = slices.Clone(d[:37]); d[32] &^= 0x40; return plain(d) }},
		"backed up only": {flags: authenticator.UserPresent | authenticator.UserVerified | authenticator.BackedUp},
		"absent":         {flags: authenticator.UserVerified},
		"unverified":     {flags: authenticator.UserPresent},
	} {
		w.key = authenticator.New(origin)
		if c.flags != 0 {
			w.key.Flags = c.flags
		}
		begun := mustBegin(w)
		response, err := w.key.Create(begun.PublicKey)
		w.must(err)
		if k := w.key.Passkeys[0]; c.object != nil {
			response, err = json.Marshal(map[string]any{
				"id": enc(k.ID), "rawId": enc(k.ID), "type": "public-key", "clientExtensionResults": map[string]any{},
				"response": map[string]any{"clientDataJSON": enc(w.key.ClientData("webauthn.create", challengeIn(t, begun.PublicKey))), "attestationObject": enc(c.object(w.key.AttestedData(k)))},
			})
			w.must(err)
		}
		added, err := w.AddPasskey(t.Context(), auth.AddPasskeyParams{Caller: w.caller(), Credential: response})
		if ok := err == nil; ok != c.ok || !ok && !errors.Is(err, auth.CodeInvalidPasskey) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			if err := w.as(w.key); err != nil {
				t.Errorf("%s: does not sign in: %v", name, err)
			}
			w.must(w.RemovePasskey(t.Context(), auth.RemovePasskeyParams{Caller: w.caller(), ID: added.Passkey.ID}))
		}
	}
}

func plain(data []byte) []byte {
	b, err := cbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data})
	if err != nil {
		panic(err)
	}
	return b
}
