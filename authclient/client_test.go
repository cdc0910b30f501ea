package authclient

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/authmount/auth"
)

// Every method can be called from a listener, and a panic in one harms no other.
func TestListenersHoldNoLocks(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := newClient(t, s)
	seen := make(chan Status, 20)
	var cancel func()
	ready := make(chan struct{})
	cancel = c.Subscribe(func(st State) {
		<-ready
		_, _ = c.Restore(t.Context())
		_, _ = c.Token(t.Context())
		_, _ = c.Session(t.Context())
		_ = c.State()
		c.Subscribe(func(State) {})()
		if st.Status == StatusSignedIn {
			_ = c.SignOut(t.Context(), ScopeLocal)
		}
		seen <- st.Status
		panic("a listener's own")
	})
	close(ready)
	if got := <-seen; got != StatusLoading {
		t.Error(got)
	}
	if _, err := c.SignUp(t.Context(), SignUpParams{Email: "ada@example.com", Password: password}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []Status{StatusSignedOut, StatusSignedIn, StatusSignedOut} {
		if got := <-seen; got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	cancel()
}

// A cancelled listener does not get the events that were waiting for it either.
func TestCancelledListenersAreToldNoMore(t *testing.T) {
	t.Parallel()
	c := newClient(t, newService(t))
	told, goOn := make(chan State, 20), make(chan struct{})
	cancel := c.Subscribe(func(st State) {
		told <- st
		<-goOn
	})
	<-told // it is running, and later events wait
	if _, err := c.SignUp(t.Context(), SignUpParams{Email: "ada@example.com", Password: password}); err != nil {
		t.Fatal(err)
	}
	cancel()
	after := make(chan State, 20)
	defer c.Subscribe(func(st State) { after <- st })()
	close(goOn)
	<-after
	if err := c.SignOut(t.Context(), ScopeLocal); err != nil {
		t.Fatal(err)
	}
	for st := range after {
		if st.Status == StatusSignedOut {
			break
		}
	}
	if len(told) > 0 {
		t.Errorf("told of %+v", <-told)
	}
}

// Events report changes only, not reads.
func TestEventsOnlyOnChange(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	told := make(chan State, 20)
	defer c.Subscribe(func(st State) { told <- st })()
	<-told
	for range 3 {
		if _, err := c.User(t.Context()); err != nil {
			t.Fatal(err)
		}
		accessToken(t, c)
	}
	name := "Ada"
	if _, err := c.UpdateUser(t.Context(), UpdateUserParams{FullName: &name}); err != nil {
		t.Fatal(err)
	}
	if st := <-told; st.User.FullName == nil || *st.User.FullName != name {
		t.Error("told of nothing new:", st)
	}
}

// Two clients in one process share nothing.
func TestClientsShareNothing(t *testing.T) {
	t.Parallel()
	s := newService(t)
	var wg sync.WaitGroup
	for i := range 8 {
		email := fmt.Sprintf("user%d@example.com", i)
		c := signedIn(t, s, email)
		wg.Go(func() {
			for range 5 {
				if u, err := c.User(t.Context()); err != nil || *u.Email != email {
					t.Error(u, err)
				}
			}
		})
	}
	wg.Wait()
}

// No error, log line or formatted value shows a secret.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	sess, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %s", *sess, sess, *sess, sess) + fmt.Sprint(sess.LogValue())
	s.set(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		b, _ := io.ReadAll(r.Body)
		w.WriteHeader(500)
		_, _ = w.Write(b) // echoes the request
	})
	_, err = c.SignInWithPassword(t.Context(), PasswordParams{Email: "ada@example.com", Password: password})
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	shown += fmt.Sprintf("%v %+v %#v", e, e, e)
	e = &Error{Code: auth.CodeMFARequired, mfa: func() pending { return pending{token: "the-mfa-token"} }}
	shown += fmt.Sprintf("%v %+v %#v", e, e, e) + fmt.Sprint(e.LogValue())
	gone := newClient(t, s)
	gone.wire.base.Host = "127.0.0.1:1"
	_, err = gone.Invitation(t.Context(), "the-invitation-token")
	shown += fmt.Sprintf("%v %#v", err, err)
	for _, secret := range []string{password, sess.AccessToken, sess.RefreshToken, "the-invitation-token", "the-mfa-token"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%q is shown in %s", secret, shown)
		}
	}
}

// Without a session there is nothing to refresh.
func TestRefreshOfNobody(t *testing.T) {
	t.Parallel()
	s := newService(t)
	if err := newClient(t, s).Refresh(t.Context()); !errors.Is(err, CodeNoSession) || s.count("POST /refresh") != 0 {
		t.Error(err)
	}
}
