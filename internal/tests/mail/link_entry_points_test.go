package mail_test

import (
	"context"
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// A stranger requests a code that creates no account, for an email address or phone number
// without one. Nothing is sent, and the owner's earlier link or code stays valid.
func TestDecoysSupersedeNothing(t *testing.T) {
	never := map[string]any{"create_user": false}
	ask := func(w *harness.World, path, field, value string) {
		w.Clock.Advance(61 * time.Second)
		never[field] = value
		defer delete(never, field)
		w.Do("POST", path, never, harness.FromAddress(7)).Want(200)
	}

	w := harness.NewWorld(t)
	mail := w.AskByMail("new@example.com", nil)
	ask(w, "/magic-link/send", "email", "new@example.com")
	w.Do("POST", "/magic-link/verify", map[string]any{"token": mail.Token}).Want(200)

	w = harness.NewWorld(t)
	mail = w.AskByMail("new@example.com", nil)
	ask(w, "/magic-link/send", "email", "new@example.com")
	w.ByCode("new@example.com", mail.Code, mail.Request, nil).Want(200)

	w = harness.NewWorld(t)
	code, request := w.AskCode(harness.PhoneNumber)
	ask(w, "/otp/send", "phone", harness.PhoneNumber)
	w.OTPOf(harness.PhoneNumber, code, request).Want(200)
}

// A decoy link, which was mailed to no one, is invalid at every endpoint that links lead to,
// even if its token is known.
func TestDecoysOpenNothing(t *testing.T) {
	w := harness.NewWorld(t)
	u := w.PostSignUp("ada@example.com").User
	for purpose, doors := range map[store.Purpose]map[string]map[string]any{
		store.PurposeMagicLink:   {"/magic-link/verify": {}},
		store.PurposeReset:       {"/reset-password": {"new_password": harness.OwnersPassword}},
		store.PurposeVerifyEmail: {"/verify-email": {}},
	} {
		for _, userID := range []string{"", u.ID} {
			for path, body := range doors {
				secret := string(purpose) + userID
				sum := sha256.Sum256([]byte("link\x00" + secret))
				now := w.Clock.Now()
				err := w.Store.PutToken(t.Context(), store.PutToken{
					Change: store.Change{Now: now, By: auth.Authority{System: "test"}},
					Token:  store.Token{Purpose: purpose, Hash: sum[:], UserID: userID, Data: []byte(`{}`), CreatedAt: now, ExpiresAt: now.Add(time.Minute)},
				})
				if err != nil {
					t.Fatal(err)
				}
				body["token"] = secret
				w.Do("POST", path, body).Want(400, auth.CodeInvalidToken)
				w.Do("GET", path+"?token="+secret, nil, harness.Header{Name: "Accept", Value: "application/json"}).Want(400, auth.CodeInvalidToken)
			}
		}
	}
}

// A caller with nothing to confirm is answered at once, however often they ask. Nothing is
// sent and no limit is drawn from.
func TestNothingToConfirm(t *testing.T) {
	w := harness.NewWorld(t)
	byPhone := w.PostOTP("+4930111111", w.PhoneCode("+4930111111")).Session()
	for name, s := range map[string]harness.Session{"no address": byPhone, "a confirmed one": w.Member("ada@example.com")} {
		for range 3 {
			if a := w.Do("POST", "/verify-email", nil, harness.Bearer(s.AccessToken)); a.Status != 200 {
				t.Errorf("%s: %d %s", name, a.Status, a.Body)
			}
		}
	}
}

// The page of each mailed link reports a failure of the store at any call, and works again
// afterwards.
func TestLinkPagesInAnOutage(t *testing.T) {
	for path, ask := range map[string]struct {
		at   string
		kind auth.Kind
	}{
		"/reset-password":    {"/forgot-password", auth.KindResetPassword},
		"/magic-link/verify": {"/magic-link/send", auth.KindMagicLink},
	} {
		t.Run(path, func(t *testing.T) {
			w, tap, _ := harness.NewTappedWorld(t)
			w.PostSignUp("ada@example.com")
			w.Do("POST", ask.at, map[string]any{"email": "ada@example.com"}).Want(200)
			page := path + "?token=" + w.LinkToken("ada@example.com", ask.kind)
			w.Do("GET", page, nil, harness.Browser)
			var names []string // of the calls, of which a later page may need fewer
			tap.Reset(storetap.Hooks{Before: func(_ context.Context, name string, _ int) { names = append(names, name) }})
			w.Do("GET", page, nil, harness.Browser).Want(200)
			for i := range names {
				tap.Reset(storetap.Hooks{Fault: func(_ context.Context, _ string, n int) storetap.Fault {
					if n == i+1 {
						return storetap.FailsBefore
					}
					return storetap.NoFault
				}})
				if a := w.Do("GET", page, nil, harness.Browser).Want(503); !strings.Contains(string(a.Body), "<html") {
					t.Errorf("without %s: %q", names[i], a.Body)
				}
			}
			tap.Reset(storetap.Hooks{})
			w.Do("GET", page, nil, harness.Browser).Want(200)
		})
	}
}
