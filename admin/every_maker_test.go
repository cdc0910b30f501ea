package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// An invitation or a link depends, when it is used, on the current table of roles and on
// its maker as read: the change has both as conditions if the maker is not the
// application. A failure of any call of the store is reported, and the use can be
// repeated.
func TestMakersAnswerForWhatTheyMade(t *testing.T) {
	t.Parallel()
	everything := []string{admin.PermUsersWrite, admin.PermUsersRead, admin.PermCredentials}
	makers := []struct {
		name string
		of   func(o *office, maker *authtest.SignedIn) admin.Actor
	}{
		{"the application", func(*office, *authtest.SignedIn) admin.Actor { return admin.System("test").Accepting() }},
		{"somebody known elsewhere", func(o *office, _ *authtest.SignedIn) admin.Actor {
			return admin.External(admin.Identity{ID: "4711", Permissions: []string{"*"}, AAL: store.LevelAAL2, AuthTime: o.Clock.Now()})
		}},
		{"a user", func(_ *office, maker *authtest.SignedIn) admin.Actor { return actor(maker) }},
		{"a user's key", func(o *office, maker *authtest.SignedIn) admin.Actor {
			return admin.Key(o.keyOf(maker.User, everything...).Secret.Reveal())
		}},
		{"a key of the service", func(o *office, _ *authtest.SignedIn) admin.Actor {
			return admin.Key(o.key(admin.System("test").Accepting(), everything...).Secret.Reveal())
		}},
	}
	uses := []struct {
		name string
		made func(o *office, by admin.Actor, ada *authtest.SignedIn, k int) func() error
	}{
		{"an invitation", func(o *office, by admin.Actor, _ *authtest.SignedIn, k int) func() error {
			_, token := o.invite(by, fmt.Sprintf("new%d@example.com", k))
			return func() error {
				_, err := o.AcceptInvitation(o.mark(o.t.Context()), auth.AcceptInvitationParams{Token: token, Password: password})
				return err
			}
		}},
		{"a link", func(o *office, by admin.Actor, ada *authtest.SignedIn, _ int) func() error {
			made, err := o.adm.MakeLink(o.t.Context(), by, admin.MakeLinkParams{Type: admin.LinkMagicLink, UserID: ada.User.ID})
			if err != nil {
				o.t.Fatal(err)
			}
			_, token, _ := strings.Cut(made.URL, "token=")
			return func() error {
				_, err := o.VerifyMagicLink(o.mark(o.t.Context()), auth.VerifyMagicLinkParams{Token: token})
				return err
			}
		}},
	}
	for _, m := range makers {
		for _, u := range uses {
			t.Run(m.name+", "+u.name, func(t *testing.T) {
				t.Parallel()
				o := newOffice(t, storetap.New(memstore.New()))
				o.mark = func(ctx context.Context) context.Context { return context.WithValue(ctx, ledgerKey{}, true) }
				ada, maker := o.LoginAs(t, "ada@example.com"), o.operator("maker@example.com", everything...)
				by := m.of(o, maker)
				rests := o.restsOn(func(k int) func() error { return u.made(o, by, ada, k) })
				if !strings.Contains(rests, "the table of roles at ") {
					t.Errorf("it does not rest on the roles: %s", rests)
				}
				for name, is := range map[string]bool{maker.User.ID: strings.HasPrefix(m.name, "a user"), "the key at ": strings.Contains(m.name, "key")} {
					if strings.Contains(rests, name) != is {
						t.Errorf("it rests on %s: %t\n%s", name, !is, rests)
					}
				}
			})
		}
	}
}

// restsOn has each call of the store that creates something fail in turn, and returns the
// calls and the terms of the change.
func (o *office) restsOn(made func(k int) func() error) string {
	o.t.Helper()
	tap, _ := o.Store.(*storetap.Tap)
	for k := 1; k < 40; k++ {
		var mu sync.Mutex
		var text strings.Builder
		failed, use := "", made(k) // it may be used although a later step fails
		tap.Reset(storetap.Hooks{
			Skip: func(ctx context.Context, _ string) bool { return ctx.Value(ledgerKey{}) == nil },
			Edit: func(method string, c *store.Change) {
				mu.Lock()
				defer mu.Unlock()
				if c.IfRoles != nil {
					fmt.Fprintf(&text, "the table of roles at %d\n", *c.IfRoles)
				}
				if c.IfKey != nil {
					fmt.Fprintf(&text, "the key at %d\n", c.IfKey.Revision)
				}
				for _, u := range c.IfUsers {
					u.Revision = nil
					fmt.Fprintln(&text, terse(o.t, u))
				}
			},
			Fault: func(_ context.Context, method string, n int) storetap.Fault {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintln(&text, method)
				if n == k {
					failed = method
					return storetap.FailsBefore
				}
				return storetap.NoFault
			},
			Draws: func(draws []store.Draw) []store.Draw { // ignores the draws of the failed attempts
				draws = slices.Clone(draws)
				for i := range draws {
					draws[i].Key = fmt.Sprint("try ", k, draws[i].Key)
				}
				return draws
			},
		})
		err := use()
		tap.Reset(storetap.Hooks{})
		mu.Lock()
		done, said := failed, text.String()
		mu.Unlock()
		switch {
		case done == "":
			if err != nil {
				o.t.Error(err)
			}
			return said
		case err != nil && !errors.Is(err, auth.CodeUnavailable):
			o.t.Errorf("where %s fails: %v", done, err)
		case err == nil && done != "Take": // notices are sent nevertheless
			o.t.Fatalf("it is done although %s fails", done)
		}
	}
	o.t.Error("it makes more calls than are looked at")
	return ""
}
