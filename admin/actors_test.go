package admin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// Every operation checks its actor itself. The operations that dashboard pages call refuse
// an actor without the permission, without a live session, without the role or under a
// ban, and they request no change of the store. The same holds for an actor that the page
// has already read: operations that change something check again at once, the others after
// a second.
func TestOperationsRefuseActors(t *testing.T) {
	t.Parallel()
	type fall struct {
		name  string
		fall  func(o *office, s *authtest.SignedIn) // changes an operator
		codes []auth.Code
	}
	falls := []fall{
		{"who lacks the permission", nil, []auth.Code{auth.CodeMissingPermission}},
		{"whose session has ended", func(o *office, s *authtest.SignedIn) {
			if _, err := o.adm.EndSessions(o.t.Context(), admin.System("test").Accepting(), s.User.ID, ""); err != nil {
				o.t.Fatal(err)
			}
		}, []auth.Code{auth.CodeSessionEnded}},
		{"who is banned", func(o *office, s *authtest.SignedIn) {
			if _, err := o.adm.BanUser(o.t.Context(), admin.System("test").Accepting(), admin.BanUserParams{UserID: s.User.ID, Reason: "x"}); err != nil {
				o.t.Fatal(err)
			}
		}, []auth.Code{auth.CodeSessionEnded, auth.CodeUserBanned}},
		{"who has lost the role", func(o *office, s *authtest.SignedIn) {
			if _, err := o.adm.SetRoles(o.t.Context(), admin.System("test").Accepting(), admin.SetRolesParams{UserID: s.User.ID}); err != nil {
				o.t.Fatal(err)
			}
		}, []auth.Code{auth.CodeNotAdmin}},
	}
	for _, row := range admin.Table() {
		t.Run(row.Pattern, func(t *testing.T) {
			t.Parallel()
			tap := storetap.New(memstore.New())
			o, target := newScene(t, tap)
			var path, body string
			var headers []string
			o.alter = func(pattern, b string, h []string) (string, string, []string) {
				_, path, _ = strings.Cut(pattern, " ")
				body, headers = b, h
				return pattern, b, h
			}
			o.try(nil, row, target)
			for i, f := range falls {
				permissions := []string{"*"}
				switch {
				case f.fall == nil && row.Permission == "":
					continue
				case f.fall == nil:
					permissions = allBut(t, o, row.Permission)
				}
				s := o.operator(strings.Repeat("x", i+1)+"@example.com", permissions...)
				v, err := o.adm.Visitor(t.Context(), actor(s))
				if err != nil {
					t.Fatal(err)
				}
				if f.fall != nil {
					f.fall(o, s)
				}
				if row.Reads { // a page rereads the visitor's session after a second
					o.Clock.Advance(time.Second)
				}
				actors := []admin.Actor{actor(s), v.Reader()}
				var changed atomic.Value
				tap.Reset(storetap.Hooks{
					Edit: func(method string, _ *store.Change) { changed.Store(method) },
					Before: func(_ context.Context, method string, _ int) {
						if slices.Contains([]string{"PutJob", "AddJobChunk"}, method) {
							changed.Store(method)
						}
					},
				})
				for _, who := range actors {
					w := httptest.NewRecorder()
					method, _, _ := strings.Cut(row.Pattern, " ")
					r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
					r.Header.Set("Content-Type", "application/json")
					for _, h := range headers {
						name, value, _ := strings.Cut(h, ": ")
						r.Header.Set(name, value)
					}
					if body == "" {
						r.Body = http.NoBody
					}
					err := admin.Serve(o.adm, who, w, r)
					if !slices.ContainsFunc(f.codes, func(c auth.Code) bool { return errors.Is(err, c) }) || w.Body.Len() > 0 {
						t.Errorf("somebody %s: %v, %.80s; want %v", f.name, err, w.Body, f.codes)
					}
					if c := changed.Load(); c != nil {
						t.Errorf("somebody %s: the store is asked for %v", f.name, c)
					}
				}
				tap.Reset(storetap.Hooks{})
			}
		})
	}
}
