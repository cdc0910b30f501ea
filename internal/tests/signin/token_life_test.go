package signin_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// livesSeen are the lives of the single-use tokens that reach the store.
type livesSeen struct {
	auth.Store
	mu    sync.Mutex
	lives map[store.Purpose]map[time.Duration]bool
}

func (s *livesSeen) Unwrap() auth.Store { return s.Store }

func (s *livesSeen) note(t store.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lives[t.Purpose] == nil {
		s.lives[t.Purpose] = map[time.Duration]bool{}
	}
	s.lives[t.Purpose][t.ExpiresAt.Sub(t.CreatedAt)] = true
}

func (s *livesSeen) PutToken(ctx context.Context, p store.PutToken) error {
	s.note(p.Token)
	return s.Store.PutToken(ctx, p)
}

func (s *livesSeen) CreateUser(ctx context.Context, p store.CreateUser) (auth.User, error) {
	for _, t := range p.Tokens {
		s.note(t)
	}
	return s.Store.CreateUser(ctx, p)
}

// Links, codes and other stored tokens have the documented lifetime, for every purpose.
func TestTokenLives(t *testing.T) {
	promised := map[store.Purpose]time.Duration{
		store.PurposeMagicLink: 15 * time.Minute, store.PurposeVerifyEmail: 24 * time.Hour, store.PurposeReset: time.Hour,
		store.PurposeExchange: time.Minute, store.PurposePhoneCode: 5 * time.Minute, store.PurposePhoneChange: 5 * time.Minute,
		store.PurposeMFA: 5 * time.Minute, store.PurposeEnroll: 5 * time.Minute, store.PurposeOAuth: 10 * time.Minute, store.PurposeStop: 7 * 24 * time.Hour,
	}
	seen := &livesSeen{Store: harness.NewStore(t), lives: map[store.Purpose]map[time.Duration]bool{}}
	idp := authtest.StartProvider(t)
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}}
	w.Env = authtest.NewOn(t, seen, auth.WithProvider(idp.Google()))
	idp.Now = w.Clock.Now

	ada := w.Member("ada@example.com")
	w.Do("POST", "/magic-link/verify", "token="+w.MagicLink("ada@example.com", map[string]any{"redirect_to": "https://app.test/in"}), harness.Form).Want(303)
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
	w.PhoneCode("+4930111111")
	w.Do("PATCH", "/me", map[string]any{"email": "new@example.com", "phone": "+4930222222"}, harness.Bearer(ada.AccessToken)).Want(200)
	w.Do("GET", "/oauth/google", nil).Want(302)
	w.Patch(ada.User.ID, store.UserPatch{AppMetadata: map[string]any{"mfa_required": true}})
	w.PostLogin("ada@example.com", harness.GoodPassword).Want(403, auth.CodeMFAEnrollmentRequired)
	w.Enrol(ada.AccessToken)
	w.PostLogin("ada@example.com", harness.GoodPassword).Want(403, auth.CodeMFARequired)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	for purpose, life := range promised {
		if got := seen.lives[purpose]; len(got) != 1 || !got[life] {
			t.Errorf("%s lives %v, want %s", purpose, got, life)
		}
	}
	source, err := os.ReadFile(filepath.Join(harness.Root(t), "store", "store.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`Purpose = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		if m[1] == string(store.PurposeInvitation) {
			continue // as long as its operator chose, see Kit.CheckInvitation
		}
		if m[1] == string(store.PurposeFirstOwner) {
			continue // created by package admin, see TestFirstOwner there
		}
		if promised[store.Purpose(m[1])] == 0 {
			t.Errorf("what is the life of %s?", m[1])
		}
	}
}
