package auth_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// A test message that takes the place of another is the only one waited for.
func TestOneTestMessageIsAwaited(t *testing.T) {
	w := newWorld(t)
	kit, ctx := host.Of(w), t.Context()
	u, err := w.Store.User(ctx, store.ByID(w.member("ada@example.com").User.ID))
	if err != nil {
		t.Fatal(err)
	}
	test, err := kit.DrawTest(ctx, u, auth.ChannelEmail)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the change of the first did not come about
		c := kit.Change(ctx, auth.Authority{System: "test"})
		test.Enclose(ctx, &c)
		if n := auth.AwaitedMessages(w.Auth); n != 1 || len(c.Messages) != 1 {
			t.Errorf("%d awaited, %d enclosed", n, len(c.Messages))
		}
	}
	if test.Forget(); auth.AwaitedMessages(w.Auth) != 0 {
		t.Error("awaited still")
	}
}

// Without a sender no text is tried out.
func TestNoTextWithoutASender(t *testing.T) {
	a := newPlain(t)
	_, err := host.Of(a).DrawTest(t.Context(), auth.User{ID: "ada", Phone: number, PhoneVerifiedAt: time.Now()}, auth.ChannelSMS)
	if !errors.Is(err, auth.CodeMethodDisabled) {
		t.Error(err)
	}
}

// What is told of a client is a list, also where nothing is forwarded.
func TestDiagnosisListsWhatIsForwarded(t *testing.T) {
	w := newWorld(t)
	d, err := host.Of(w).Diagnose(t.Context())
	if err != nil || d.Client.Forwarded == nil || len(d.Client.Forwarded) != 0 {
		t.Errorf("%+v, %v", d.Client, err)
	}
}

// Each limit of an account is cleared once, in an order in which nobody waits for
// another who clears them.
func TestLimitsAreClearedInOrder(t *testing.T) {
	w := newWorld(t)
	s := w.member("ada@example.com")
	u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := host.Of(w).LockKeys(t.Context(), u)
	if err != nil || len(keys) < 5 || !slices.IsSorted(keys) || len(slices.Compact(slices.Clone(keys))) != len(keys) {
		t.Errorf("%q, %v", keys, err)
	}
}

// A link that somebody begins who is banned by the time it comes back tells them so.
func TestLinkOfTheBanned(t *testing.T) {
	w, idp := providerWorld(t)
	s := w.member("ada@example.com")
	to := w.visitor(idp).link("github", s, map[string]any{"redirect_to": "https://app.test/", "code_challenge": challengeOf(verifier)})
	idp.SignsIn(evilGit)
	back := idp.Authorize(t, to)
	until := w.Clock.Now().Add(time.Hour)
	w.patch(s.User.ID, store.UserPatch{BannedUntil: &until})
	q := w.visitor(idp).back("github", back).location().Query()
	if q.Has("code") || q.Get("error_code") != string(auth.CodeUserBanned) {
		t.Errorf("the redirect says %v", q)
	}
}
