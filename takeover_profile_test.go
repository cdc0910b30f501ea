package auth_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// What a stranger said of themselves is not the owner's: it neither stays on the
// account, nor goes into the owner's mails as their name.
func TestTakeoverDropsTheProfile(t *testing.T) {
	const line = "Ada call now +1 900 555 0100"
	ways := map[string]func(w *world){
		"magic link": func(w *world) {
			w.do("POST", "/magic-link/verify", map[string]any{"token": w.askByMail("ada@example.com", nil).token}).want(200)
		},
		"no, not me": func(w *world) {
			body := url.Values{"token": {w.linkToken("ada@example.com", auth.KindVerifyEmail)}, "disown": {"1"}}
			w.do("POST", "/verify-email", body.Encode(), form, browser).want(200)
		},
		"reset": func(w *world) {
			w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
			token := w.linkToken("ada@example.com", auth.KindResetPassword)
			w.do("POST", "/reset-password", map[string]any{"token": token, "new_password": "another horse battery"}).want(200)
		},
	}
	for name, takeOver := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.do("POST", "/signup", map[string]any{
				"email": "ada@example.com", "password": goodPassword, "full_name": line, "user_metadata": map[string]any{"payout": "evil"},
			}).session().User.ID
			takeOver(w)
			u, err := w.Store.User(t.Context(), store.ByID(id))
			if err != nil || !u.EmailVerified() || u.FullName != "" || len(u.UserMetadata) > 0 {
				t.Errorf("%v, name %q, metadata %v", err, u.FullName, u.UserMetadata)
			}
			w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"})
			for _, m := range w.Inbox.Messages() {
				if strings.Contains(m.Text, "900 555") {
					t.Errorf("%s says %s", m.Kind, m.Text)
				}
			}
		})
	}
}

// Who confirms within a session of the account keeps what they said of themselves.
func TestProofWithinKeepsTheProfile(t *testing.T) {
	w := newWorld(t)
	s := w.do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": goodPassword, "full_name": "Ada"}).session()
	w.do("POST", "/verify-email", map[string]any{"token": w.linkToken("ada@example.com", auth.KindVerifyEmail)}, bearer(s.AccessToken)).want(200)
	u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
	if err != nil || !u.EmailVerified() || u.FullName != "Ada" {
		t.Errorf("%v, %+v", err, u)
	}
}
