package auth_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// A link that was mailed to nobody is none, whoever guesses its token, at every
// door that links lead to.
func TestDecoysOpenNothing(t *testing.T) {
	w := newWorld(t)
	u := w.signUp("ada@example.com").User
	for purpose, doors := range map[store.Purpose]map[string]map[string]any{
		store.PurposeMagicLink:   {"/magic-link/verify": {}},
		store.PurposeReset:       {"/reset-password": {"new_password": ownersPassword}},
		store.PurposeVerifyEmail: {"/verify-email": {}},
	} {
		for _, userID := range []string{"", u.ID} {
			for path, body := range doors {
				secret := string(purpose) + userID
				sum := sha256.Sum256([]byte(secret))
				now := w.Clock.Now()
				err := w.Store.PutToken(t.Context(), store.PutToken{
					Change: store.Change{Now: now, By: auth.Authority{System: "test"}},
					Token:  store.Token{Purpose: purpose, Hash: sum[:], UserID: userID, Data: []byte(`{}`), CreatedAt: now, ExpiresAt: now.Add(time.Minute)},
				})
				if err != nil {
					t.Fatal(err)
				}
				body["token"] = secret
				w.do("POST", path, body).want(400, auth.CodeInvalidToken)
				w.do("GET", path+"?token="+secret, nil, header{"Accept", "application/json"}).want(400, auth.CodeInvalidToken)
			}
		}
	}
}

// Who has nothing to confirm is answered at once, as often as they ask: nothing is
// sent, and nothing drawn.
func TestNothingToConfirm(t *testing.T) {
	w := newWorld(t)
	byPhone := w.otp("+4930111111", w.phoneCode("+4930111111")).session()
	for name, s := range map[string]session{"no address": byPhone, "a confirmed one": w.member("ada@example.com")} {
		for range 3 {
			if a := w.do("POST", "/verify-email", nil, bearer(s.AccessToken)); a.status != 200 {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
		}
	}
}
