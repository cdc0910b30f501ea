package auth

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/openapi"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// kit is what Auth offers to the packages of this module that are built on it: package
// host describes each method.
type kit struct{ a *Auth }

var _ host.Kit = kit{}

func init() {
	host.Register(func(a any) host.Kit { return kit{a.(interface{ self() *Auth }).self()} })
}

// self is the Auth itself, also of a struct that embeds it.
func (a *Auth) self() *Auth { return a }

func (k kit) Handler(below string, routes []host.Route) http.Handler {
	return k.a.mount(roomRows(below, routes))
}

func (k kit) Describe(below string, routes []host.Route, schemas, prose []byte) {
	k.a.rooms.add(openapi.Part{Routes: described(roomRows(below, routes)), Schemas: schemas, Prose: prose})
}

func roomRows(below string, routes []host.Route) []route {
	rows := make([]route, 0, len(routes))
	for _, r := range routes {
		method, path, _ := strings.Cut(r.Pattern, " ")
		row := route{pattern: method + " " + below + path, access: accessOf(r.Access), whenOff: r.WhenOff, judges: r.WhenOff, streams: r.Streams, errors: codes(r.Errors), handle: r.Handle, form: r.Form}
		if row.takesSecretKeys() {
			row.limits = []string{"SecretKeysPerIP"}
		}
		rows = append(rows, row)
	}
	return rows
}

// accessOf is an access of package host in the route table.
func accessOf(a host.Access) access {
	return map[host.Access]access{host.Open: open, host.Keyed: keyed, host.SignedIn: signedIn, host.Operating: operating, host.Elsewhere: elsewhere}[a]
}

func codes(list []string) (out []Code) {
	for _, c := range list {
		out = append(out, Code(c))
	}
	return out
}

func (k kit) Store() Store { return k.a.store }

func (k kit) Now() time.Time { return k.a.now() }

func (k kit) NewID() string { return k.a.newID() }

func (k kit) Decode(r *http.Request, v any) error { return decode(r, v) }

func (k kit) DecodeOptional(r *http.Request, v any) error { return decodeOptional(r, v) }

func (k kit) WriteJSON(w http.ResponseWriter, status int, v any) error {
	return writeJSON(w, status, v)
}

func (k kit) Error(code string, cause error) error { return fail(Code(code), cause) }

func (k kit) Invalid(field, problem string) error { return invalid(field, problem) }

func (k kit) StoreError(err error) error { return storeFailed(err) }

func (k kit) Current(ctx context.Context) (Session, User) {
	me := currentFrom(ctx)
	return me.session, me.user
}

func (k kit) Change(ctx context.Context, by Authority, events ...store.OutcomeEvent) store.Change {
	return k.a.newChange(ctx, by, events...)
}

func (k kit) ChangeOf(ctx context.Context, by Authority, u User, events ...store.OutcomeEvent) store.Change {
	return k.a.newChangeOf(ctx, by, account{User: u}, events...)
}

func (k kit) Committed(ctx context.Context, c store.Change, edit func(*Event)) {
	k.a.committed(ctx, c, store.OutcomeDone, edit)
}

func (k kit) Draw(r Rate, limit, value string, cost int) store.Draw {
	return k.a.draw(r, limit, value, cost)
}

func (k kit) Take(ctx context.Context, draws ...store.Draw) error {
	return k.a.take(ctx, draws...)
}

func (k kit) Roles(ctx context.Context) (store.RoleTable, error) {
	if k.a.roleStore == nil {
		return store.RoleTable{}, nil
	}
	known, err := k.a.rolePermissions(ctx)
	if err == nil && known.younger(rolesFor) {
		return known.table, nil
	}
	return k.a.roleStore.Roles(ctx) // tokens make do with what is older while somebody reads, or nobody can
}

func (k kit) ForgetRoles() { k.a.roleTable.known.Store(nil) }

func (k kit) MessagesSent(ctx context.Context) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for k.a.outbox.UnderWay() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k kit) Enclose(ctx context.Context, c *store.Change, m host.Mail) {
	k.a.enclose(ctx, c, outbox.Outgoing{Kind: m.Kind, To: m.To.Email, NewAddress: m.NewAddress, Provider: m.Provider}, m.To, nil)
}
