package auth_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// A factor of another kind is no authenticator app, whatever its secret; nor is an
// app one that waits for its first code.
func TestFactorsOfOtherKinds(t *testing.T) {
	w := newWorld(t)
	factors, ok := store.Capability[store.FactorStore](w.Store)
	if !ok {
		t.Fatal("no second factors")
	}
	ada := w.LoginAs(t, "ada@example.com")
	put := func() auth.Factor {
		t.Helper()
		all, err := factors.Factors(t.Context(), ada.User.ID)
		if err != nil || len(all.List) != 1 {
			t.Fatalf("%d factors, %v", len(all.List), err)
		}
		other := all.List[0]
		other.ID, other.Kind = uuid.NewString(), "other"
		if err := factors.PutFactor(t.Context(), store.PutFactor{Change: w.byTest(), Factor: other}); err != nil {
			t.Fatal(err)
		}
		return other
	}
	secret := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(ada.AccessToken)).want(200)).Secret
	other := put()
	if _, err := factors.EnableFactor(t.Context(), store.EnableFactor{
		Change: w.byTest(), UserID: ada.User.ID, FactorID: other.ID, Session: auth.Session{ID: ada.SessionID, UserID: ada.User.ID, AAL: store.LevelAAL2},
	}); err != nil {
		t.Fatal(err)
	}
	w.verifyMFA(w.mfaToken(), w.code(secret, 0)).want(422, auth.CodeInvalidTOTPCode)
	// The app that waits is enabled beside it, and serves from then on.
	w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(secret, 0)}, bearer(ada.AccessToken)).want(200)
	w.Clock.Advance(time.Minute)
	w.verifyMFA(w.mfaToken(), w.code(secret, 0)).session()
}

// One of another kind that waits for something is not what a code enables.
func TestEnrolmentOfAnotherKind(t *testing.T) {
	w := newWorld(t)
	factors, ok := store.Capability[store.FactorStore](w.Store)
	if !ok {
		t.Fatal("no second factors")
	}
	ada := w.member("ada@example.com")
	f := auth.Factor{ID: uuid.NewString(), UserID: ada.User.ID, Kind: "other", Secret: []byte("s"), CreatedAt: w.Clock.Now()}
	if err := factors.PutFactor(t.Context(), store.PutFactor{Change: w.byTest(), Factor: f}); err != nil {
		t.Fatal(err)
	}
	w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": "123456"}, bearer(ada.AccessToken)).want(409, auth.CodeMFANotPending)
}

// byTest is a change behind the service's back.
func (w *world) byTest() store.Change {
	return store.Change{Now: w.Clock.Now(), By: auth.Authority{System: "test"}}
}

// The app shows which account a code is for, also of one without an address.
func TestSetupNamesTheAccount(t *testing.T) {
	w := newWorld(t)
	byPhone := w.otp("+4930111111", w.phoneCode("+4930111111")).session()
	for name, access := range map[string]string{"ada@example.com": w.LoginAs(t, "ada@example.com").AccessToken, "+4930111111": byPhone.AccessToken} {
		uri := decodeAs[struct{ URI string }](w.do("POST", "/2fa/setup-totp", nil, bearer(access)).want(200)).URI
		if u, err := url.Parse(uri); err != nil || !strings.HasSuffix(u.Path, ":"+name) {
			t.Errorf("%s for %s (%v)", uri, name, err)
		}
	}
}
