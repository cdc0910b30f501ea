package auth

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/openapi"
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

// Handler serves a room's routes below a path of the mount, such as "/admin",
// with and without the mount's own prefix: request ids, panics, errors, access
// and settings as the other endpoints have them.
func (k kit) Handler(below string, routes []host.Route) http.Handler {
	return k.a.mount(roomRows(below, routes))
}

// Describe adds a room's routes to the OpenAPI document, with what was written for
// them (see package internal/openapi). It has to come before the document is read.
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

// Store is where everything is kept.
func (k kit) Store() Store { return k.a.store }

// Now is the clock, in the precision that stores keep.
func (k kit) Now() time.Time { return k.a.now() }

// NewID makes a UUIDv7 (RFC 9562).
func (k kit) NewID() string { return k.a.newID() }

// Decode reads a JSON object into the struct that v points to, strictly.
func (k kit) Decode(r *http.Request, v any) error { return decode(r, v) }

// DecodeOptional is Decode for endpoints whose body may be absent.
func (k kit) DecodeOptional(r *http.Request, v any) error { return decodeOptional(r, v) }

// WriteJSON writes a response.
func (k kit) WriteJSON(w http.ResponseWriter, status int, v any) error {
	return writeJSON(w, status, v)
}

// Error makes the error of a code; cause, which may be nil, goes to the log only.
func (k kit) Error(code string, cause error) error { return fail(Code(code), cause) }

// Invalid is CodeValidationFailed for one field.
func (k kit) Invalid(field, problem string) error { return invalid(field, problem) }

// StoreError makes an error of what a store returned.
func (k kit) StoreError(err error) error { return storeFailed(err) }

// Current is the session and user of a request that was let through as
// KitSignedIn.
func (k kit) Current(ctx context.Context) (Session, User) {
	me := currentFrom(ctx)
	return me.session, me.user
}

// Change begins a change of the store in somebody's name, with its events, none of
// which is one that an owner has to be told of.
func (k kit) Change(ctx context.Context, by Authority, events ...store.OutcomeEvent) store.Change {
	return k.a.newChange(ctx, by, events...)
}

// ChangeOf is Change of a user, as read before it, with the notices that its
// events call for.
func (k kit) ChangeOf(ctx context.Context, by Authority, u User, events ...store.OutcomeEvent) store.Change {
	return k.a.newChangeOf(ctx, by, account{User: u}, events...)
}

// Committed sends the messages of a change that has come about and tells the
// hooks. edit, which may be
// nil, completes the events with what only the store knew.
func (k kit) Committed(ctx context.Context, c store.Change, edit func(*Event)) {
	k.a.committed(ctx, c, store.OutcomeDone, edit)
}

// Draw names the bucket of a rate limit and what it counts by.
func (k kit) Draw(r Rate, limit, value string, cost int) store.Draw {
	return k.a.draw(r, limit, value, cost)
}

// Take draws from rate limits, or returns CodeRateLimited.
func (k kit) Take(ctx context.Context, draws ...store.Draw) error {
	return k.a.take(ctx, draws...)
}

// Roles is the table of roles as this process knows it: a second old at most, and
// never older than a change that it was told of. It is shared, and not to be changed.
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

// ForgetRoles has what roles permit read anew, after it was changed.
func (k kit) ForgetRoles() { k.a.roleTable.known.Store(nil) }

// MessagesSent waits until this process holds no message that is to be sent, at
// most until ctx ends.
func (k kit) MessagesSent(ctx context.Context) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for k.a.outbox.underWay() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Enclose puts a message to a user into a change; Committed sends it.
func (k kit) Enclose(ctx context.Context, c *store.Change, m host.Mail) {
	k.a.enclose(ctx, c, outgoing{Kind: m.Kind, To: m.To.Email, NewAddress: m.NewAddress, Provider: m.Provider}, m.To, nil)
}
