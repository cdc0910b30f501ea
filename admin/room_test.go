package admin_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/seal"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// The pages' room has a door of its own, and judges as the handlers do: every operation
// that shows something shows the same to the same person, and refuses the same.
func TestRoomAnswersAsTheHandlerDoes(t *testing.T) {
	t.Parallel()
	o, target := newScene(t, memstore.New())
	room := o.adm.Room(seal.New())
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	person := o.LoginAs(t, "person@example.com")
	for _, row := range admin.Table() {
		if !row.Reads {
			continue
		}
		for _, who := range []*authtest.SignedIn{owner, person} {
			var path string
			o.alter = func(pattern, body string, headers []string) (string, string, []string) {
				_, path, _ = strings.Cut(pattern, " ")
				return pattern, body, headers
			}
			a := o.try(who, row, target)
			w := httptest.NewRecorder()
			err := room.Serve(actor(who), w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
			var refused *auth.Error
			switch {
			case a.status == 200:
				if same := w.Body.String() == a.text || row.Pattern == "GET /diagnostics"; err != nil || !same { // which tells how long things take
					t.Errorf("%s: %v, %d bytes, of %d", row.Pattern, err, w.Body.Len(), len(a.text))
				}
			case !errors.As(err, &refused) || string(refused.Code) != a.body["code"] || refused.Status != a.status || w.Body.Len() > 0:
				t.Errorf("%s: %v, want %d %v", row.Pattern, err, a.status, a.body["code"])
			}
		}
	}
	for _, path := range []string{"/", "/no/such", "/users/", "/users//x", "/users/../keys", "/me/"} {
		w := httptest.NewRecorder()
		err := room.Serve(actor(owner), w, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}, Header: http.Header{}})
		if !errors.Is(err, auth.CodeNotFound) || w.Body.Len() > 0 {
			t.Errorf("%s: %v %.80s", path, err, w.Body)
		}
	}
	if room.Auth() != o.Auth || room.HasLogin() {
		t.Error("the room is of another service")
	}
	if _, ok, err := room.Elsewhere(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)); ok || err != nil {
		t.Errorf("somebody is known elsewhere: %t %v", ok, err)
	}
	open := reflect.ValueOf(o.adm.Room)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the zero key opens the room")
			}
		}()
		open.Call([]reflect.Value{reflect.Zero(open.Type().In(0))})
	}()
}

// What somebody may do by the room is what the operation asks of them, and an attempt at
// it is recorded where a look is not.
func TestRoomJudgesEveryOperation(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	room := o.adm.Room(seal.New())
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	clerk := o.operator("clerk@example.com", admin.PermUsersRead, notes)
	noFactor := o.LoginAs(t, "nofactor@example.com", authtest.Roles(auth.RoleOwner))
	person := o.LoginAs(t, "person@example.com", authtest.AAL2())
	o.Clock.Advance(16 * time.Minute)
	known := func(s *authtest.SignedIn) admin.Known {
		k, err := room.Known(t.Context(), actor(s))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for s, want := range map[*authtest.SignedIn]bool{owner: true, clerk: true, noFactor: true, person: false} {
		if k := known(s); k.Admin != want || k.Label != s.User.Email {
			t.Errorf("%+v", k)
		}
	}
	if k := known(clerk); !k.Holds(notes) || k.Holds("money.send") || !known(owner).Holds("money.send") {
		t.Error("somebody holds what they do not, or the other way round")
	}
	for _, row := range admin.Table() {
		want := map[*authtest.SignedIn]auth.Code{owner: "", clerk: "", noFactor: auth.CodeInsufficientAAL, person: auth.CodeNotAdmin}
		o.Clock.Advance(time.Hour) // there is a limit on how much is recorded of one
		if row.StepUp {
			want[owner] = auth.CodeReauthNeeded
		}
		if row.Permission != "" && row.Permission != admin.PermUsersRead {
			want[clerk] = auth.CodeMissingPermission
		}
		for s, code := range want {
			k := known(s)
			before := o.lastDenied()
			if err := k.May(row.Pattern); code == "" && err != nil || code != "" && !errors.Is(err, code) {
				t.Errorf("%s may %s: %v, want %s", k.Label, row.Pattern, err, code)
			}
			if o.lastDenied().ID != before.ID {
				t.Errorf("a look at %s is recorded", row.Pattern)
			}
			err := k.Try(t.Context(), row.Pattern)
			if code == "" && err != nil || code != "" && !errors.Is(err, code) {
				t.Errorf("%s tries %s: %v, want %s", k.Label, row.Pattern, err, code)
			}
			after := o.lastDenied()
			if recorded := after.ID != before.ID; recorded != (code != "") || recorded && (after.Record.Operation != row.Pattern || after.Record.Actor != k.Label || after.Actor.ID != s.User.ID) {
				t.Errorf("%s tries %s: %+v", k.Label, row.Pattern, after)
			}
		}
	}
	if err := known(owner).Try(t.Context(), "GET /no/such"); !errors.Is(err, auth.CodeNotFound) {
		t.Error(err)
	}
	for _, p := range []string{admin.PermKeysRead, admin.PermKeysWrite, admin.PermRolesWrite, admin.PermRolesAssign, admin.PermSettingsWrite, admin.PermImpersonate, admin.PermUsersRead, notes} {
		if want := slices.Contains([]string{admin.PermUsersRead, notes}, p); room.KeysMay(p) != want {
			t.Errorf("keys may have %s: %t", p, !want)
		}
	}
	if _, err := room.Known(t.Context(), admin.User(auth.Caller{UserID: owner.User.ID, SessionID: nobodysID})); !errors.Is(err, auth.CodeSessionEnded) {
		t.Error(err)
	}
}

// lastDenied is the newest refusal in the audit log.
func (o *office) lastDenied() (last auth.Event) {
	o.t.Helper()
	o.written()
	p, err := o.adm.AuditLog(o.t.Context(), admin.System("test"), admin.AuditLogParams{EventQuery: store.EventQuery{Type: string(auth.EventAdminDenied), Limit: 1}})
	if err != nil {
		o.t.Fatal(err)
	}
	for _, e := range p.Events {
		last = e
	}
	return last
}

// A page goes by the session that it was judged by, for a second and no longer, and only
// where it shows something: what changes something reads it anew.
func TestRoomGoesByTheSessionForASecond(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	o := newOffice(t, tap)
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	ada := o.LoginAs(t, "ada@example.com")
	k, err := o.adm.Room(seal.New()).Known(t.Context(), actor(owner))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.behind().RevokeSessions(t.Context(), store.RevokeSessions{Change: o.change(), UserID: owner.User.ID}); err != nil {
		t.Fatal(err)
	}
	ban := func(who admin.Actor) error {
		_, err := o.adm.BanUser(t.Context(), who, admin.BanUserParams{UserID: ada.User.ID, Reason: "x"})
		return err
	}
	list := func(who admin.Actor) error {
		_, err := o.adm.ListUsers(t.Context(), who, admin.ListUsersParams{})
		return err
	}
	if err := ban(k.Looking()); !errors.Is(err, auth.CodeSessionEnded) {
		t.Errorf("a session that has ended bans: %v", err)
	}
	if err := list(actor(owner)); !errors.Is(err, auth.CodeSessionEnded) {
		t.Errorf("who is not looking at a page: %v", err)
	}
	o.Clock.Advance(time.Second - 1)
	if err := list(k.Looking()); err != nil {
		t.Errorf("within the second: %v", err)
	}
	o.Clock.Advance(1)
	if err := list(k.Looking()); !errors.Is(err, auth.CodeSessionEnded) {
		t.Errorf("after it: %v", err)
	}
}

// Somebody whom the application alone knows is known in the room as well.
func TestRoomOfAnAdminLoginElsewhere(t *testing.T) {
	t.Parallel()
	o := withStaff(t, memstore.New())
	room := o.adm.Room(seal.New())
	if !room.HasLogin() {
		t.Error("there is a login elsewhere")
	}
	ask := func(badge string) (admin.Actor, bool, error) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		name, value, _ := strings.Cut(badge, ": ")
		r.Header.Set(name, value)
		return room.Elsewhere(r)
	}
	who, ok, err := ask(o.staff(admin.PermUsersRead))
	if err != nil || !ok {
		t.Fatal(err)
	}
	k, err := room.Known(t.Context(), who)
	if err != nil || k.Label != "Grace of the desk" || !k.Admin || !k.Holds(admin.PermUsersRead) || k.Holds(admin.PermUsersWrite) {
		t.Errorf("%+v, %v", k, err)
	}
	if err := k.May("GET /users"); err != nil {
		t.Error(err)
	}
	if _, ok, err := ask(staffHeader + ": suspended"); !ok || !errors.Is(err, auth.CodeUserBanned) {
		t.Errorf("%t %v", ok, err)
	}
	if _, ok, err := ask("X-Other: x"); !ok || !errors.Is(err, auth.CodeMissingToken) {
		t.Errorf("%t %v", ok, err)
	}
}
